#include "sim/engine/interval.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/deviation.hpp"
#include "base/error.hpp"
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

/// Standard deviation of the logarithm of a step's compute.
double compute_deviation(const Problem& problem) {
  const double whole = problem.errors.compute.value_or(time_error(problem.profile).value);
  return std::sqrt(whole * whole + variance_of_profile(problem.profile));
}

/// Whether a setting replaces a number of the network or of its hosts.
bool is_of_network(const std::pair<std::string, std::string>& setting) {
  constexpr std::array<std::string_view, 4> kRooms{"link.", "network.", "collective.", "group."};
  return std::any_of(kRooms.begin(), kRooms.end(), [&](auto room) { return setting.first.starts_with(room); });
}

/// Standard deviation of the logarithm of all times but compute.
double network_deviation(const PredictRequest& request, const Problem& problem, const Calibration* calibration) {
  if (problem.errors.network) return *problem.errors.network;
  if (calibration != nullptr) return calibration->residuals.rms_pct / 100.0;
  const auto& given = request.settings;
  const bool set = std::any_of(given.begin(), given.end(), is_of_network);
  return set ? network_errors().set.value : network_errors().nominal.value;
}

Plan with_scaled_compute(Plan plan, double factor) {
  for (Op& op : plan.ops) {
    if (op.kind != OpKind::Compute) continue;
    op.duration *= factor;
    for (ComputePart& part : op.parts) part.duration *= factor;
    for (Seconds& sample : op.samples) sample *= factor;
  }
  return plan;
}

/// How log(step) changes when the compute of all ranks takes e^x of its time and all else takes as long as before: two
/// replays, at both ends of the range that is asked for, and straight lines between.
class ComputeScaling {
public:
  ComputeScaling(const Problem& problem, const Prediction& prediction, double range) : range_(range) {
    const bool alone = prediction.flows == 0 && prediction.step - prediction.compute <= 1e-9 * prediction.step;
    for (const double end : {-range, range})
      (end < 0.0 ? below_ : above_) = alone || range == 0.0 ? end : replayed(problem, prediction, end);
  }
  double operator()(double x) const { return range_ > 0.0 ? std::abs(x) / range_ * (x < 0.0 ? below_ : above_) : 0.0; }

private:
  static double replayed(const Problem& problem, const Prediction& prediction, double x) {
    ReplayOptions options = problem.options;
    options.record = false;
    options.progress = {};
    options.steps_per_worker = prediction.steps_per_worker;
    const Plan plan = with_scaled_compute(problem.plan, std::exp(x));
    return std::log(replay(plan, problem.cluster, options).step / prediction.step);
  }
  double range_;
  double below_ = 0.0;
  double above_ = 0.0;
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
  const double compute = kNormal90 * compute_deviation(problem);
  const double network = kNormal90 * network_deviation(request, problem, calibration ? &*calibration : nullptr);
  const ComputeScaling log_step(problem, prediction, std::max(compute, network));
  const auto reach = [&](double sign) {
    const double by_compute = log_step(sign * compute);
    const double by_network = sign * network + log_step(-sign * network);
    return std::sqrt(by_compute * by_compute + by_network * by_network + kNormal90 * kNormal90 * rest);
  };
  return {std::exp(-reach(-1.0)) * prediction.step, std::exp(reach(1.0)) * prediction.step};
}

}  // namespace simsync
