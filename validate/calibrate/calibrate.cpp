#include "validate/calibrate/calibrate.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "base/error.hpp"
#include "validate/calibrate/model_fit.hpp"

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

CalibrationResult calibrate(const Cluster& cluster, const std::vector<Probe>& probes, const CalibrateOptions& options) {
  std::vector<CalibrationModel> models;
  if (options.unknowns.empty()) {
    models = models_for(cluster, probes);
  } else {
    models = {{.name = "as told", .assumed = {}, .unknowns = options.unknowns}};
  }
  Cluster grown = grown_for(cluster, probes);
  grown.collective.measured.clear();  // they belong to the numbers that are fitted anew
  std::vector<std::unique_ptr<ModelFit>> fits;
  std::map<std::string, double> found;
  std::size_t done = 0;
  for (CalibrationModel& model : models) {
    if (options.progress) options.progress(done++, models.size() + 1, model.name);
    for (const auto& known : options.assumed) {
      std::erase_if(model.unknowns, [&](const Unknown& unknown) { return unknown.key == known.first; });
      std::erase_if(model.assumed, [&](const auto& setting) { return setting.first == known.first; });
      model.assumed.push_back(known);
    }
    auto fit = std::make_unique<ModelFit>(grown, probes, options, std::move(model));
    if (fit->run(found)) fits.push_back(std::move(fit));
  }
  std::stable_sort(fits.begin(), fits.end(), [](const auto& a, const auto& b) {
    return a->identified() != b->identified() ? a->identified() : a->criterion() < b->criterion();
  });
  ModelFit* best = nullptr;
  for (const auto& fit : fits) {
    if (options.progress) options.progress(models.size(), models.size() + 1, fit->name() + ", by replay");
    if (!fit->refine()) continue;
    if (best == nullptr || fit->identified()) best = fit.get();
    if (fit->identified()) break;
  }
  if (best == nullptr) throw InputError("these measurements depend on none of the parameters");
  best->expect_identified();
  return best->result();
}

}  // namespace simsync
