#include "sim/engine/interval.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "base/error.hpp"
#include "base/spread.hpp"
#include "models/time_error.hpp"
#include "platforms/calibration.hpp"
#include "platforms/network_error.hpp"
#include "platforms/reader.hpp"

namespace simsync {
namespace {

/// Replays of one request with numbers of its calibration moved.
class MovedReplays {
public:
  MovedReplays(const PredictRequest& request, const Calibration& calibration, const Prediction& fitted)
      : request_(request),
        log_fitted_(std::log(fitted.step.value())),
        steps_per_worker_(fitted.steps_per_worker),
        calibrated_(inputs_.cluster(request.cluster)) {
    apply(calibrated_, calibration);
  }

  /// Change of log(step) by one standard deviation of the parameter.
  double sensitivity(const CalibratedParameter& parameter) {
    const auto set = [&](const auto& setting) { return setting.first == parameter.key; };
    const auto& given = request_.settings;
    if (parameter.deviation == 0.0 || std::any_of(given.begin(), given.end(), set)) return 0.0;
    const auto below = log_step(parameter, -parameter.deviation);
    const auto above = log_step(parameter, parameter.deviation);
    if (below && above) return 0.5 * (*above - *below);
    if (below) return log_fitted_ - *below;
    return above ? *above - log_fitted_ : 0.0;
  }

private:
  /// The cluster has taken the fitted value, so that it can only refuse another for its range.
  [[nodiscard]] bool in_range(const std::string& key, const std::string& value) const {
    Cluster cluster = calibrated_;
    try {
      set_parameter(cluster, key, value);
      return true;
    } catch (const InputError&) {
      return false;
    }
  }

  /// log(step) with one parameter elsewhere; nullopt when its range does not reach so far.
  std::optional<double> log_step(const CalibratedParameter& parameter, double distance) {
    const std::string text = parameter.scale.text(parameter.moved(distance));
    if (!in_range(parameter.key, text)) return std::nullopt;
    PredictRequest request = request_;
    request.settings.insert(request.settings.begin(), {parameter.key, text});
    const Problem problem = prepare(request, inputs_);
    ReplayOptions options = problem.options;
    options.steps_per_worker = steps_per_worker_;
    return std::log(replay(problem.plan, problem.cluster, options).step.value());
  }

  const PredictRequest& request_;
  double log_fitted_;
  int steps_per_worker_;
  Inputs inputs_;
  Cluster calibrated_;
};

double variance_of_parameters(const PredictRequest& request, const Calibration& calibration, const Prediction& fitted) {
  MovedReplays replays(request, calibration, fitted);
  std::vector<double> change;
  for (const auto& parameter : calibration.parameters) change.push_back(replays.sensitivity(parameter));
  double sum = 0.0;
  for (std::size_t a = 0; a < change.size(); ++a)
    for (std::size_t b = 0; b < change.size(); ++b) sum += change[a] * change[b] * calibration.correlation[a][b];
  return std::max(0.0, sum);
}

/// Of the measured steps' compute, relative to its mean; 0 when only a mean is known.
double variance_of_profile(const Profile& profile) {
  if (profile.steps.size() < 2) return 0.0;
  std::vector<double> totals;
  for (const auto& step : profile.steps) {
    double total = 0.0;
    for (const LayerTime& layer : step) total += layer.forward.value() + layer.backward.value();
    totals.push_back(total);
  }
  double mean = 0.0;
  for (const double total : totals) mean += total / static_cast<double>(totals.size());
  double sum = 0.0;
  for (const double total : totals) sum += (total / mean - 1.0) * (total / mean - 1.0);
  return sum / static_cast<double>(totals.size() - 1);
}

/// Of all times but compute.
Spread network_spread(const Problem& problem, const std::optional<Calibration>& calibration) {
  if (problem.errors.network) return spread_of(*problem.errors.network);
  switch (problem.network) {
    case NetworkBasis::Calibrated:
      return spread_of(calibration.value().residuals.rms_pct / 100.0);
    case NetworkBasis::Set:
      return network_errors().set;
    case NetworkBasis::File:
      break;
  }
  return network_errors().nominal;
}

/// Of the compute of several workers against that of one, unless the user knows: from `network_error`, or because
/// nothing slows compute (`collective.interference=0`, as where devices are emulated). A fitted interference is one
/// number for many jobs, and leaves what they differ by.
Spread interference_spread(const PredictRequest& request, const Problem& problem) {
  constexpr std::string_view kKey = "collective.interference";
  const auto& given = request.settings;
  bool known = problem.plan.rank_count() == 1 || problem.errors.network.has_value();
  known = known || std::any_of(given.begin(), given.end(),
                               [&](const auto& setting) { return setting.first == kKey && setting.second == "0"; });
  return known ? Spread{} : network_errors().interference;
}

Plan with_scaled_compute(Plan plan, double factor) {
  for (Op& op : plan.ops) {
    auto* work = std::get_if<Compute>(&op.body);
    if (work == nullptr) continue;
    work->duration *= factor;
    for (ComputePart& part : work->parts) part.duration *= factor;
    for (Seconds& sample : work->samples) sample *= factor;
  }
  return plan;
}

/// How log(step) changes when the compute of all ranks takes e^x of its time and all else takes as long as before.
/// Below 0 from replays, with straight lines between. Above 0 what is exposed now stays exposed, at most: the step is
/// convex in the times of its parts.
class ComputeScaling {
public:
  ComputeScaling(const Problem& problem, const Prediction& prediction)
      : problem_(problem),
        prediction_(prediction),
        exposed_(std::max(Seconds{0.0}, prediction.step - prediction.compute)),
        alone_(prediction.flows + prediction.collectives_alone == 0 && exposed_ <= 1e-9 * prediction.step) {}

  /// Makes it exact at `x`.
  void replay_at(double x) {
    if (!alone_ && x < -kLeast && !known_.contains(x)) known_[x] = replayed(x);
  }
  double operator()(double x) const {
    if (alone_) return x;
    if (x >= 0.0) return std::log(((prediction_.step - exposed_) * std::exp(x) + exposed_) / prediction_.step);
    const auto above = known_.lower_bound(x);
    const std::pair<double, double> nearest =
        above == known_.end() ? std::pair(0.0, 0.0) : std::pair<double, double>(*above);
    const auto [right, at_right] = nearest;
    if (above == known_.begin()) return known_.empty() ? share() * x : at_right + share() * (x - right);
    const auto [left, at_left] = *std::prev(above);
    return at_left + (at_right - at_left) * (x - left) / (right - left);
  }

private:
  static constexpr double kLeast = 0.05;  ///< nearer to 0 compute's share of the step tells enough

  [[nodiscard]] double share() const { return (prediction_.step - exposed_) / prediction_.step; }
  [[nodiscard]] double replayed(double x) const {
    ReplayOptions options = problem_.options;
    options.record = false;
    options.progress = {};
    options.steps_per_worker = prediction_.steps_per_worker;
    const Plan plan = with_scaled_compute(problem_.plan, std::exp(x));
    return std::log(replay(plan, problem_.cluster, options).step / prediction_.step);
  }
  const Problem& problem_;
  const Prediction& prediction_;
  Seconds exposed_;
  bool alone_;
  std::map<double, double> known_;
};

}  // namespace

StepInterval step_interval(const PredictRequest& request, const Problem& problem, const Prediction& prediction) {
  double rest = prediction.step_error * prediction.step_error;
  std::optional<Calibration> calibration;
  if (!request.calibration.empty()) {
    calibration = load_calibration(request.calibration);
    const double repeat = calibration->repeat_pct / 100.0;
    rest += variance_of_parameters(request, *calibration, prediction) + repeat * repeat;
  }
  const auto& said = problem.errors.compute;
  const Spread compute = said ? spread_of(*said) : time_error(problem.profile);
  const Spread profiled = spread_of(std::sqrt(variance_of_profile(problem.profile)));
  const Spread network = network_spread(problem, calibration);
  const Spread interference = interference_spread(request, problem);
  ComputeScaling log_step(problem, prediction);
  log_step.replay_at(std::log(compute.low));
  log_step.replay_at(-std::log(network.high));
  const auto reach = [&](double Spread::*end) {
    double square = kNormal90 * kNormal90 * rest;
    for (const Spread& of_compute : {compute, profiled, interference})
      square += std::pow(log_step(std::log(of_compute.*end)), 2);
    const double slower = std::log(network.*end);
    return std::sqrt(square + std::pow(slower + log_step(-slower), 2));
  };
  return {std::exp(-reach(&Spread::low)) * prediction.step, std::exp(reach(&Spread::high)) * prediction.step};
}

}  // namespace simsync
