#include "validate/whole_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/parse_units.hpp"

namespace simsync::detail {
namespace {

constexpr double kCloseEnough = 1e-3;

}  // namespace

Seconds WholeSteps::compute(const PredictRequest& request, Seconds measured) {
  const std::string key = fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.model, request.cluster, request.strategy,
                                      request.workers, measured.value(), settings_text(request.settings));
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  return known_[key] = search(request, measured);
}

/// False position on a step that grows with its compute, by no more than a few times as much.
Seconds WholeSteps::search(PredictRequest request, Seconds measured) {
  constexpr int kTrials = 12;
  constexpr double kLeastSlope = 0.25;
  constexpr double kMostSlope = 4.0;
  request.settings.emplace_back("step_time", "");
  double low = 0.0;
  double high = measured.value();
  double at = high;
  double slope = 1.0;
  double best = at;
  double least = std::numeric_limits<double>::infinity();
  double last_at = 0.0;
  double last_step = 0.0;
  for (int trial = 0; trial < kTrials; ++trial) {
    request.settings.back().second = format_number(at) + "s";
    const double step = predictor_.step_time(request).value();
    const double off = std::abs(std::log(step / measured.value()));
    if (off < least) best = at;
    least = std::min(least, off);
    if (least <= kCloseEnough) break;
    (step > measured.value() ? high : low) = at;
    if (trial > 0 && at != last_at) slope = std::clamp((step - last_step) / (at - last_at), kLeastSlope, kMostSlope);
    last_at = at;
    last_step = step;
    at -= (step - measured.value()) / slope;
    if (!(at > low && at < high)) at = 0.5 * (low + high);
  }
  return Seconds{best};
}

}  // namespace simsync::detail
