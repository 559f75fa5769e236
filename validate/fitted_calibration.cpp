#include "validate/fitted_calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "sim/problem/inputs.hpp"

namespace simsync {
namespace {

/// Cases whose predictions rest on the same fitted parameters and the same calibration.
struct FittedSet {
  std::vector<std::size_t> parameters;
  std::vector<const CaseResult*> cases;
};

std::vector<FittedSet> sets_of(const StudyResult& result) {
  std::vector<FittedSet> out;
  for (const auto& c : result.cases) {
    if (c.fitted.empty()) continue;
    const auto same = [&](const FittedSet& set) {
      return set.parameters == c.fitted && set.cases.front()->asked.calibration == c.asked.calibration;
    };
    const auto found = std::find_if(out.begin(), out.end(), same);
    FittedSet& set = found == out.end() ? out.emplace_back() : *found;
    set.parameters = c.fitted;
    set.cases.push_back(&c);
  }
  return out;
}

/// The study's calibration without what was fitted anew; nothing when it has none.
Calibration base_of(const StudyResult& result, const FittedSet& set) {
  const std::string& path = set.cases.front()->asked.calibration;
  Calibration out;
  if (path.empty()) return out;
  const Calibration read = load_calibration(path);
  const auto fitted = [&](const std::string& key) {
    return std::any_of(set.parameters.begin(), set.parameters.end(),
                       [&](std::size_t p) { return result.parameters[p].key == key; });
  };
  out = read;
  std::erase_if(out.assumed, [&](const auto& setting) { return fitted(setting.first); });
  out.parameters.clear();
  out.correlation.clear();
  std::vector<std::size_t> kept;
  for (std::size_t p = 0; p < read.parameters.size(); ++p) {
    if (!fitted(read.parameters[p].key)) kept.push_back(p);
  }
  for (const std::size_t p : kept) {
    out.parameters.push_back(read.parameters[p]);
    auto& line = out.correlation.emplace_back();
    for (const std::size_t q : kept) line.push_back(read.correlation[p][q]);
  }
  return out;
}

/// Parameters of one fit are correlated as it found them, those of different fits are taken as independent.
void add_parameters(const StudyResult& result, const FittedSet& set, Calibration& out) {
  const std::size_t before = out.parameters.size();
  const std::size_t count = before + set.parameters.size();
  for (auto& line : out.correlation) line.resize(count, 0.0);
  for (const std::size_t p : set.parameters) {
    const FittedParameter& parameter = result.parameters[p];
    out.parameters.push_back({.key = parameter.key,
                              .value = parse_scaled(parameter.value)->value,
                              .scale = parameter.scale,
                              .deviation = parameter.deviation});
    const Fit& fit = result.fits[parameter.fit];
    auto& line = out.correlation.emplace_back(count, 0.0);
    for (std::size_t i = 0; i < set.parameters.size(); ++i) {
      const std::size_t q = set.parameters[i];
      if (result.parameters[q].fit == parameter.fit) line[before + i] = fit.correlation[p - fit.first][q - fit.first];
    }
  }
}

/// Of the rows of all fits; with those of a calibration before, the root mean square of both together and the larger of
/// the others.
void add_rows(const Study& study, const StudyResult& result, const FittedSet& set, Calibration& out) {
  std::map<std::size_t, std::vector<std::string>> keys;  // by fit
  for (const std::size_t p : set.parameters) keys[result.parameters[p].fit].push_back(result.parameters[p].key);
  std::vector<double> errors;
  for (const auto& [number, of_fit] : keys) {
    const Fit& fit = result.fits[number];
    const std::string& left_out = result.parameters[fit.first].left_out;
    out.sources.push_back(fmt::format("study {}: {} from {}{}", study.name, fmt::join(of_fit, ", "),
                                      fmt::join(fit.cases, ", "),
                                      left_out.empty() ? "" : " (without " + left_out + ")"));
    for (const double error : fit.errors_pct) errors.push_back(std::abs(error));
  }
  std::sort(errors.begin(), errors.end());
  double squares = static_cast<double>(out.rows) * out.residuals.rms_pct * out.residuals.rms_pct;
  for (const double error : errors) squares += error * error;
  out.rows += errors.size();
  const double median = 0.5 * (errors[(errors.size() - 1) / 2] + errors[errors.size() / 2]);
  out.residuals = {.rms_pct = std::sqrt(squares / static_cast<double>(out.rows)),
                   .median_pct = std::max(out.residuals.median_pct, median),
                   .worst_pct = std::max(out.residuals.worst_pct, errors.back())};
}

/// A file without its folder and ending.
std::string short_name(const std::string& name) {
  return name.find('/') == std::string::npos ? name : std::filesystem::path(name).stem().string();
}

/// One line for each strategy and cluster, by the names that `predict` takes: models and numbers of workers.
std::vector<std::string> validity(const Study& study, const FittedSet& set) {
  struct Range {
    std::set<std::string> models;
    int least = 0, most = 0;
    std::size_t cases = 0;
  };
  std::map<std::pair<std::string, std::string>, Range> found;
  for (const auto* c : set.cases) {
    Range& range = found[{short_name(c->asked.strategy), short_name(c->asked.cluster)}];
    range.models.insert(short_name(c->asked.model));
    range.least = range.cases == 0 ? c->asked.workers : std::min(range.least, c->asked.workers);
    range.most = std::max(range.most, c->asked.workers);
    ++range.cases;
  }
  std::vector<std::string> out;
  for (const auto& [what, range] : found) {
    const std::string workers = range.least < range.most ? fmt::format("{} to {} workers", range.least, range.most)
                                : range.most == 1        ? std::string("1 worker")
                                                         : fmt::format("{} workers", range.most);
    out.push_back(fmt::format("{} on {}, {}, {}: {} case{} of study {}", what.first, what.second, workers,
                              fmt::join(range.models, ", "), range.cases, range.cases == 1 ? "" : "s", study.name));
  }
  return out;
}

}  // namespace

std::vector<Calibration> fitted_calibrations(const Study& study, const StudyResult& result, const std::string& date) {
  Inputs inputs;
  std::vector<Calibration> out;
  for (const auto& set : sets_of(result)) {
    Calibration calibration = base_of(result, set);
    calibration.cluster = inputs.cluster(set.cases.front()->asked.cluster).name;
    calibration.date = date;
    calibration.valid_for = validity(study, set);
    calibration.repeat_pct = std::max(calibration.repeat_pct, study.measured.error_pct);
    add_parameters(result, set, calibration);
    add_rows(study, result, set, calibration);
    out.push_back(std::move(calibration));
  }
  return out;
}

}  // namespace simsync
