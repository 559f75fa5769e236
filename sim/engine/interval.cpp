#include "sim/engine/interval.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "platforms/calibration.hpp"
#include "platforms/reader.hpp"

namespace simsync {
namespace {

constexpr double kNormal90 = 1.6449;  // standard deviations on each side that hold 90 % of a normal distribution

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

}  // namespace

StepInterval step_interval(const PredictRequest& request, const Problem& problem, const Prediction& prediction) {
  if (request.calibration.empty()) return {prediction.step, prediction.step};
  const Calibration calibration = load_calibration(request.calibration);
  const double compute = std::min(1.0, prediction.compute / prediction.step);
  const double model_form = (1.0 - compute) * calibration.residuals.of_most_pct() / 100.0;
  const double repeat = calibration.repeat_pct / 100.0;
  const double variance = variance_of_parameters(request, calibration, prediction) + model_form * model_form +
                          compute * compute * variance_of_profile(problem.profile) + repeat * repeat +
                          prediction.step_error * prediction.step_error;
  const double reach = std::exp(kNormal90 * std::sqrt(variance));
  return {prediction.step / reach, reach * prediction.step};
}

}  // namespace simsync
