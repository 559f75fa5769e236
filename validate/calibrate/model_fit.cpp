#include "validate/calibrate/model_fit.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "platforms/reader.hpp"
#include "validate/calibrate/robust.hpp"

namespace simsync::detail {
namespace {

const double kMostDeviation = std::log(kMostFactor);
constexpr double kNamedShare = 0.3;
constexpr std::string_view kProtocols = "collective.protocols.";
constexpr std::string_view kStepInter = "per_step_inter";

}  // namespace

std::vector<std::pair<std::string, std::string>> ModelFit::settings_at(const std::vector<double>& shares) const {
  auto settings = model_.assumed;
  for (std::size_t p = 0; p < shares.size(); ++p) settings.emplace_back(model_.unknowns[p].key, text_at(p, shares[p]));
  settings.insert(settings.end(), chosen_.begin(), chosen_.end());
  return settings;
}

Cluster ModelFit::cluster_at(const std::vector<double>& shares) const {
  Cluster out = cluster_;
  apply_settings(out, settings_at(shares));
  return out;
}

std::vector<double> ModelFit::residuals(const std::vector<double>& shares) const {
  const Cluster cluster = cluster_at(shares);
  CollectiveEstimates estimates(cluster);
  std::vector<double> out;
  const auto settings = settings_at(shares);
  for (std::size_t i = 0; i < probes_.size(); ++i) {
    const Probe& probe = probes_[i];
    const bool closed = probe.collective() && !by_replay_;
    const Seconds time = closed ? estimates.of(probe) : known_times_.of(i, probe, cluster, settings);
    out.push_back(weight_of(probe) * std::log(time / probe.measured));
  }
  prior_.add(model_.unknowns, shares, out);
  if (options_.evaluated) options_.evaluated();
  return out;
}

/// Standard deviation of a row.
double ModelFit::error() const {
  const auto values = residuals(fit_.shares);
  const auto freedom = static_cast<double>(values.size()) - static_cast<double>(model_.unknowns.size());
  return std::max(kLeastError, std::sqrt(loss_of(values, cut_, prior_.size()) / std::max(1.0, freedom)));
}

/// Takes out one parameter that nothing depends on. A protocol's rate without effect means that no probe takes that
/// protocol: the description has one too many.
ModelFit::Drop ModelFit::drop_without_effect() {
  for (std::size_t p = 0; p < model_.unknowns.size(); ++p) {
    const Unknown& unknown = model_.unknowns[p];
    if (unknown.demanded || deviation(p) <= kMostDeviation) continue;
    const double effect = fit_.effect[p] / width(p);
    const bool nothing = is_nothing(p);
    if (effect > kNoEffect && !nothing) continue;
    if (unknown.key.starts_with(kProtocols) && !nothing) return Drop::Description;
    const bool cost = unknown.dimension == Dimension::Time || unknown.dimension == Dimension::Size;
    notes_.push_back(cost ? fmt::format("'{}' cannot be told from 0 and is taken as 0", unknown.key)
                          : fmt::format("nothing depends on '{}', which was left as it is", unknown.key));
    if (cost) model_.assumed.emplace_back(unknown.key, "0");
    const bool of_message = unknown.key.ends_with(kStepInter) || unknown.dimension == Dimension::Size;
    model_.unknowns.erase(model_.unknowns.begin() + static_cast<std::ptrdiff_t>(p));
    fit_.shares.erase(fit_.shares.begin() + static_cast<std::ptrdiff_t>(p));
    if (of_message) find_stated();
    return Drop::Parameter;
  }
  return Drop::Nothing;
}

/// Instead of a cost per message that came out as 0: the next of those that the cluster states.
void ModelFit::find_stated() {
  if (model_.stated.empty()) return;
  notes_.push_back(fmt::format("'{}' is found in its place", model_.stated.front().key));
  model_.unknowns.push_back(model_.stated.front());
  model_.stated.erase(model_.stated.begin());
  fit_.shares.push_back(0.5);
}

std::optional<CalibrationModel> ModelFit::with_next_stated() const {
  if (told_.stated.empty()) return std::nullopt;
  const std::string& key = told_.stated.front().key;
  const auto found = [&](const Unknown& unknown) { return unknown.key == key; };
  if (std::ranges::none_of(model_.unknowns, found)) return std::nullopt;
  CalibrationModel out = told_;
  out.assumed.emplace_back(key, "0");
  out.stated.erase(out.stated.begin());
  return out;
}

/// Without this cost (a time or size of nothing, a rate beyond what matters) the others, as they are, describe the rows
/// about as well.
bool ModelFit::is_nothing(std::size_t p) const {
  const Dimension dimension = model_.unknowns[p].dimension;
  if (dimension == Dimension::Number) return false;
  const auto with = residuals(fit_.shares);
  auto shares = fit_.shares;
  shares[p] = dimension == Dimension::Rate ? 1.0 : 0.0;  // the end of its range
  const auto without = residuals(shares);
  constexpr double kWorse = 1.05;
  return loss_of(without, cut_, prior_.size()) <= kWorse * loss_of(with, cut_, prior_.size());
}

/// A protocol starts as what was found for all sizes together, with `steps` times its costs per round; one with flags
/// reaches a smaller share of the rate.
std::vector<double> ModelFit::start_from(const std::map<std::string, double>& before, double steps) const {
  std::vector<double> shares;
  for (const Unknown& unknown : model_.unknowns) {
    auto found = before.find(unknown.key);
    double factor = 1.0;
    if (found == before.end() && unknown.key.starts_with(kProtocols)) {
      const std::string field = unknown.key.substr(unknown.key.rfind('.') + 1);
      found = before.find("collective." + field);
      if (field != "efficiency") factor = steps;
      if (field == "efficiency" && unknown.key.find(".simple.") == std::string::npos)
        factor = unknown.key.find(".ll128.") == std::string::npos ? 0.3 : 0.6;
    }
    const Scale scale{.dimension = unknown.dimension, .logarithmic = true};
    shares.push_back(found == before.end() ? 0.5 : scale.share_of(factor * found->second, unknown.low, unknown.high));
  }
  return shares;
}

void ModelFit::fit_from(std::vector<std::vector<double>> starts, bool search) {
  prior_ =
      options_.prior ? PriorDistance(*options_.prior, options_.between_clusters, model_.unknowns) : PriorDistance();
  if (probes_.size() + prior_.size() < model_.unknowns.size())
    throw InputError(
        fmt::format("{} parameters need at least as many measurements, got {}", model_.unknowns.size(), probes_.size()),
        "name fewer with --fit, fix some with --set, or bring a prior");
  if (model_.unknowns.empty()) {
    fit_ = {};
    return;
  }
  // Replays take some milliseconds each, closed forms microseconds.
  constexpr std::size_t kAllStarts = 16;
  constexpr std::size_t kFewStarts = 3;
  fit_ = fit_shares(model_.unknowns.size(), [&](const std::vector<double>& shares) { return residuals(shares); },
                    {.robust_scale = cut_,
                     .starts = std::move(starts),
                     .followed = closed() ? kAllStarts : kFewStarts,
                     .search = search,
                     .plain_tail = prior_.size(),
                     .costly = !closed(),
                     .held = held_shares()});
}

bool ModelFit::closed() const {
  return !by_replay_ &&
         std::all_of(probes_.begin(), probes_.end(), [](const Probe& probe) { return probe.collective(); });
}

std::vector<std::optional<double>> ModelFit::held_shares() const {
  std::vector<std::optional<double>> out(model_.unknowns.size());
  for (std::size_t p = 0; p < out.size(); ++p) {
    const Unknown& unknown = model_.unknowns[p];
    const auto found = held_.find(unknown.key);
    if (found == held_.end()) continue;
    const Scale scale{.dimension = unknown.dimension, .logarithmic = true};
    out[p] = scale.share_of(found->second, unknown.low, unknown.high);
  }
  return out;
}

bool ModelFit::run(std::map<std::string, double>& before) {
  // Where residuals take replays, what simpler descriptions found stays as it is in the search.
  if (!closed()) held_ = before;
  for (;;) {
    std::vector<std::vector<double>> starts;
    if (!before.empty()) starts = {start_from(before, 1.0), start_from(before, 2.0)};
    if (starts.size() > 1 && starts[0] == starts[1]) starts.pop_back();
    fit_from(std::move(starts), true);
    const Drop drop = drop_without_effect();
    if (drop == Drop::Nothing) break;
    if (drop == Drop::Description || model_.unknowns.empty()) return false;
  }
  held_.clear();
  for (const auto& [key, value] : values()) before[key] = value;
  criterion_ = criterion(cut_);
  return true;
}

double ModelFit::criterion(double cut) const {
  auto values = residuals(fit_.shares);
  values.resize(probes_.size());
  const auto n = static_cast<double>(probes_.size());
  return n * std::log(std::max(kLeastError * kLeastError, loss_of(values, cut, 0) / n)) +
         static_cast<double>(model_.unknowns.size()) * std::log(n);
}

void ModelFit::start_again(const std::map<std::string, double>& values, double cut) {
  model_ = told_;
  notes_.clear();
  cut_ = cut;
  fit_.shares = start_from(values, 1.0);
}

bool ModelFit::run_from(const std::map<std::string, double>& values) {
  start_again(values, kFirstCut);
  return refine();
}

bool ModelFit::run_from(const std::map<std::string, double>& values, double cut) {
  start_again(values, cut);
  by_replay_ = true;
  return fit_on();
}

std::map<std::string, double> ModelFit::values() const {
  std::map<std::string, double> out;
  for (std::size_t p = 0; p < model_.unknowns.size(); ++p)
    out[model_.unknowns[p].key] = model_.unknowns[p].value_at(fit_.shares[p]);
  return out;
}

bool ModelFit::fit_on() {
  for (;;) {
    fit_from({fit_.shares}, false);
    const Drop drop = drop_without_effect();
    if (drop == Drop::Nothing) return true;
    if (drop == Drop::Description || model_.unknowns.empty()) return false;
  }
}

bool ModelFit::refine() {
  by_replay_ = true;
  constexpr int kMostRounds = 4;
  constexpr double kSame = 0.9;
  for (int round = 0; round < kMostRounds; ++round) {
    if (!fit_on()) return false;
    auto values = residuals(fit_.shares);
    values.resize(probes_.size());
    const double spread = std::max(kLeastCut, spread_of(std::move(values)));
    if (spread > kSame * cut_ || round + 1 == kMostRounds) break;
    cut_ = spread;
  }
  return true;
}

bool ModelFit::identified() const {
  for (std::size_t p = 0; p < model_.unknowns.size(); ++p)
    if (deviation(p) > kMostDeviation) return false;
  return true;
}

void ModelFit::expect_identified() const {
  for (std::size_t p = 0; p < model_.unknowns.size(); ++p) {
    if (deviation(p) <= kMostDeviation) continue;
    std::vector<std::string> others;
    for (std::size_t q = 0; q < model_.unknowns.size(); ++q) {
      const double correlation =
          fit_.covariance[p][q] / std::sqrt(std::max(1e-30, fit_.covariance[p][p] * fit_.covariance[q][q]));
      if (q != p && std::abs(correlation) > 1.0 - kNamedShare) others.push_back("'" + model_.unknowns[q].key + "'");
    }
    const std::string why = others.empty() ? kHardly : fmt::format("it trades off against {}", fmt::join(others, ", "));
    refuse(model_.unknowns[p].key, why);
  }
}

void refuse(const std::string& key, const std::string& why) {
  throw InputError(fmt::format("the measurements cannot identify '{}': {}", key, why),
                   "measure other sizes, rank counts or tensor counts, or fix a value with --set");
}

void add_alone(Calibration& calibration, CalibratedParameter parameter) {
  calibration.parameters.push_back(std::move(parameter));
  for (auto& row : calibration.correlation) row.push_back(0.0);
  calibration.correlation.emplace_back(calibration.parameters.size(), 0.0).back() = 1.0;
}

CalibrationResult ModelFit::result() const {
  CalibrationResult out;
  out.model = model_.name;
  out.notes = notes_;
  if (options_.prior && prior_.size() == 0)
    out.notes.push_back(
        fmt::format("the prior, for cluster '{}', knows none of these parameters and was not used: its links have "
                    "other names, or other measurements made it",
                    options_.prior->cluster));
  Calibration& c = out.calibration;
  c.assumed = model_.assumed;
  const double scale = error();
  for (std::size_t p = 0; p < model_.unknowns.size(); ++p) {
    CalibratedParameter parameter;
    parameter.key = model_.unknowns[p].key;
    parameter.scale = {.dimension = model_.unknowns[p].dimension, .logarithmic = true};
    parameter.value = parse_scaled(text_at(p, fit_.shares[p]))->value;  // as the file will say
    parameter.deviation = scale * width(p) * std::sqrt(std::max(0.0, fit_.covariance[p][p]));
    c.parameters.push_back(std::move(parameter));
    auto& row = c.correlation.emplace_back();
    for (std::size_t q = 0; q < model_.unknowns.size(); ++q)
      row.push_back(p == q
                        ? 1.0
                        : std::clamp(fit_.covariance[p][q] / std::sqrt(fit_.covariance[p][p] * fit_.covariance[q][q]),
                                     -1.0, 1.0));
  }
  for (const auto& [key, text] : chosen_)
    add_alone(c, {.key = key, .value = parse_scaled(text)->value, .scale = {}, .deviation = 0.0});
  return out;
}

}  // namespace simsync::detail
