#include "validate/calibrate/calibrate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <optional>

#include "base/error.hpp"
#include "validate/calibrate/burst_rows.hpp"
#include "validate/calibrate/interference.hpp"
#include "validate/calibrate/keep_ratios.hpp"
#include "validate/calibrate/model_fit.hpp"
#include "validate/calibrate/server_threads.hpp"

namespace simsync {

using detail::ModelFit;

std::vector<CalibratedRow> predict_rows(const Cluster& calibrated, const std::vector<Probe>& probes) {
  const Cluster grown = grown_for(calibrated, probes);
  std::vector<CalibratedRow> out;
  for (const Probe& probe : probes) out.push_back({probe, predicted_time(probe, grown)});
  return out;
}

Residuals residuals_of(const std::vector<CalibratedRow>& rows) {
  if (rows.empty()) return {};
  std::vector<double> errors;
  double sum = 0.0;
  for (const auto& row : rows) {
    errors.push_back(std::abs(row.error_pct()));
    sum += row.error_pct() * row.error_pct();
  }
  std::sort(errors.begin(), errors.end());
  return {.rms_pct = std::sqrt(sum / static_cast<double>(errors.size())),
          .median_pct = 0.5 * (errors[(errors.size() - 1) / 2] + errors[errors.size() / 2]),
          .worst_pct = errors.back()};
}

namespace {

constexpr const char* kNothing = "these measurements depend on none of the parameters";

bool is_overlap(const Probe& probe) {
  return probe.kind == ProbeKind::Overlap;
}

bool is_threads(const std::string& key) {
  return key.starts_with("group.") && key.ends_with(".cpu.threads");
}

/// What is to be found: the caller's wishes or, without any, what follows from the probes.
struct Wanted {
  std::vector<CalibrationModel> models;
  FoundApart apart;
};

/// `described` are the probes without overlaps.
Wanted wanted(const Cluster& cluster, const std::vector<Probe>& probes, const std::vector<Probe>& described,
              const CalibrateOptions& options) {
  Wanted out;
  if (options.unknowns.empty()) {
    if (!described.empty()) out.models = models_for(cluster, described);
    out.apart = apart_for(cluster, probes);
  } else {
    CalibrationModel told{.name = "as told", .assumed = {}, .unknowns = {}, .stated = {}};
    for (const Unknown& unknown : options.unknowns) {
      if (unknown.key == kInterference) {
        out.apart.interference = unknown;
      } else if (is_threads(unknown.key)) {
        out.apart.threads = unknown;
      } else {
        told.unknowns.push_back(unknown);
      }
    }
    if (!described.empty()) out.models = {std::move(told)};
  }
  for (const auto& [key, value] : options.assumed) {
    if (key == kInterference) out.apart.interference.reset();
    if (is_threads(key)) out.apart.threads.reset();
  }
  return out;
}

/// What the prior took as given is taken so here. A number that it does not know is left as the cluster has it where
/// the rows and the prior's numbers are too few to find all.
void follow_prior(const Calibration& prior, std::size_t rows, CalibrationModel& model) {
  const auto known = [&](const Unknown& unknown) {
    return std::any_of(prior.parameters.begin(), prior.parameters.end(),
                       [&](const CalibratedParameter& parameter) { return parameter.key == unknown.key; });
  };
  for (const auto& given : prior.assumed) {
    const auto same = [&](const Unknown& unknown) { return unknown.key == given.first && !unknown.demanded; };
    if (std::erase_if(model.unknowns, same) > 0) model.assumed.push_back(given);
  }
  const auto helped = std::count_if(model.unknowns.begin(), model.unknowns.end(), known);
  if (rows + static_cast<std::size_t>(helped) >= model.unknowns.size()) return;
  std::erase_if(model.unknowns, [&](const Unknown& unknown) { return !unknown.demanded && !known(unknown); });
}

/// The best of the descriptions, fitted by replay. `probes` have no overlaps.
std::unique_ptr<ModelFit> best_fit(const Cluster& grown, const std::vector<Probe>& probes,
                                   const CalibrateOptions& options, const std::vector<CalibrationModel>& models) {
  std::vector<std::unique_ptr<ModelFit>> fits;
  std::map<std::string, double> found;
  const auto add = [&](CalibrationModel model, std::map<std::string, double>& before) {
    for (const auto& known : options.assumed) {
      const auto same = [&](const Unknown& unknown) { return unknown.key == known.first; };
      std::erase_if(model.unknowns, same);
      std::erase_if(model.stated, same);
      std::erase_if(model.assumed, [&](const auto& setting) { return setting.first == known.first; });
      model.assumed.push_back(known);
    }
    if (options.prior) follow_prior(*options.prior, probes.size(), model);
    auto fit = std::make_unique<ModelFit>(grown, probes, options, std::move(model));
    if (!fit->run(before)) return std::optional<CalibrationModel>{};
    fits.push_back(std::move(fit));
    return fits.back()->with_next_stated();
  };
  std::size_t done = 0;
  for (const CalibrationModel& model : models) {
    if (options.progress) options.progress(done++, models.size() + 1, model.name);
    auto before = found;
    auto other = add(model, found);
    if (other) (void)add(*std::move(other), before);
  }
  std::stable_sort(fits.begin(), fits.end(), [](const auto& a, const auto& b) {
    return a->identified() != b->identified() ? a->identified() : a->criterion() < b->criterion();
  });
  std::unique_ptr<ModelFit> best;
  for (auto& fit : fits) {
    if (options.progress) options.progress(models.size(), models.size() + 1, fit->name() + ", by replay");
    if (!fit->refine()) continue;
    const bool identified = fit->identified();
    if (best == nullptr || identified) best = std::move(fit);
    if (identified) break;
  }
  return best;
}

/// What is said once of all rows, whatever described them.
void finish(const Cluster& cluster, const std::vector<Probe>& probes, const CalibrateOptions& options,
            CalibrationResult& out) {
  Calibration& c = out.calibration;
  c.cluster = cluster.name;
  c.date = options.date;
  c.sources = options.sources;
  c.rows = probes.size();
  Cluster calibrated = cluster;
  apply(calibrated, c);
  out.rows = predict_rows(calibrated, probes);
  c.residuals = residuals_of(out.rows);
  c.repeat_pct = detail::repeat_pct_of(probes);
  if (c.residuals.rms_pct > kLargeRmsPct)
    out.notes.push_back(
        fmt::format("the measurements are {:.1f} % (rms) off after the fit, more than {:g} %: no numbers of "
                    "this cluster explain all of them, look at the worst rows",
                    c.residuals.rms_pct, kLargeRmsPct));
  detail::Ratios ratios = detail::ratios_of(calibrated, out.rows);
  if (!ratios.help()) return;
  out.notes.push_back(fmt::format(
      "{} sizes of collectives: the numbers are {:.1f} % off on average, with the ratios of the other sizes {:.1f} %; "
      "these are kept",
      ratios.tested, 100.0 * std::expm1(ratios.without), 100.0 * std::expm1(ratios.left_out)));
  c.measured = std::move(ratios.groups);
}

}  // namespace

CalibrationResult calibrate(const Cluster& cluster, const std::vector<Probe>& all, const CalibrateOptions& options) {
  Cluster grown = grown_for(cluster, all);
  grown.collective.measured.clear();  // they belong to the numbers that are fitted anew
  Cluster stated = grown;
  apply_settings(stated, options.assumed);
  const detail::BurstRows bursts = detail::without_bursts(stated, all);
  const std::vector<Probe>& probes = bursts.kept;
  std::vector<Probe> described;
  std::vector<Probe> overlaps;
  std::partition_copy(probes.begin(), probes.end(), std::back_inserter(overlaps), std::back_inserter(described),
                      is_overlap);
  const Wanted what = wanted(cluster, probes, described, options);
  if (what.models.empty() && !what.apart.interference) throw InputError(kNothing);

  CalibrationResult out{.calibration = {}, .model = "interference alone", .rows = {}, .left_out = {}, .notes = {}};
  out.calibration.assumed = options.assumed;
  if (!what.models.empty()) {
    auto best = best_fit(grown, described, options, what.models);
    if (best != nullptr && what.apart.threads)
      best = detail::with_threads(std::move(best), {grown, described, options, *what.apart.threads});
    if (best == nullptr) throw InputError(kNothing);
    best->expect_identified();
    out = best->result();
  }
  if (what.apart.interference) {
    Cluster calibrated = grown;
    apply(calibrated, out.calibration);
    detail::find_interference(calibrated, overlaps, *what.apart.interference, out);
  }
  if (!bursts.note.empty()) out.notes.push_back(bursts.note);
  finish(grown, probes, options, out);
  Cluster calibrated = grown;
  apply(calibrated, out.calibration);
  out.left_out = predict_rows(calibrated, bursts.left_out);
  return out;
}

}  // namespace simsync
