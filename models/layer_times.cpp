#include "models/layer_times.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace simsync {

Seconds median(std::vector<Seconds> values) {
  SIMSYNC_ASSERT(!values.empty());
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

namespace {

Seconds mean(const std::vector<Seconds>& values) {
  Seconds sum;
  for (const Seconds value : values) sum += value;
  return 1.0 / static_cast<double>(values.size()) * sum;
}

template <class Middle>
std::vector<LayerTime> middles(const std::vector<std::vector<LayerTime>>& steps, Middle middle) {
  SIMSYNC_ASSERT(!steps.empty());
  std::vector<LayerTime> out;
  for (std::size_t i = 0; i < steps.front().size(); ++i) {
    std::vector<Seconds> forward;
    std::vector<Seconds> backward;
    for (const auto& times : steps) {
      forward.push_back(times[i].forward);
      backward.push_back(times[i].backward);
    }
    out.push_back({middle(std::move(forward)), middle(std::move(backward))});
  }
  return out;
}

}  // namespace

namespace {

Seconds sum_of(const std::vector<LayerTime>& times) {
  Seconds sum;
  for (const LayerTime& time : times) sum += time.forward + time.backward;
  return sum;
}

}  // namespace

std::vector<LayerTime> medians(const std::vector<std::vector<LayerTime>>& steps) {
  auto out = middles(steps, median);
  const Seconds sum = sum_of(out);
  if (steps.size() == 1 || sum.value() <= 0.0) return out;
  std::vector<Seconds> totals;
  for (const auto& times : steps) totals.push_back(sum_of(times));
  const double ratio = median(std::move(totals)) / sum;
  for (LayerTime& time : out) time = {ratio * time.forward, ratio * time.backward};
  return out;
}

std::vector<LayerTime> means(const std::vector<std::vector<LayerTime>>& steps) {
  return middles(steps, mean);
}

namespace detail {
namespace {

double ratio_of(Seconds to, Seconds from) {
  return from.value() > 0.0 ? to / from : 1.0;
}

}  // namespace

void fill_gaps(std::vector<LayerTime>& times, const std::vector<LayerTime>& estimate) {
  Seconds measured;
  Seconds estimated;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (times[i].forward.value() < 0.0) continue;
    measured += times[i].forward + times[i].backward;
    estimated += estimate[i].forward + estimate[i].backward;
  }
  const double ratio = estimated.value() > 0.0 ? measured / estimated : 1.0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (times[i].forward.value() < 0.0) times[i] = {ratio * estimate[i].forward, ratio * estimate[i].backward};
  }
}

bool carry_over(std::vector<LayerTime>& times, const std::vector<LayerTime>& there,
                const std::vector<LayerTime>& here) {
  bool scaled = false;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const double forward = ratio_of(here[i].forward, there[i].forward);
    const double backward = ratio_of(here[i].backward, there[i].backward);
    scaled = scaled || forward != 1.0 || backward != 1.0;
    times[i] = {forward * times[i].forward, backward * times[i].backward};
  }
  return scaled;
}

void multiply(Profile& profile, double factor) {
  const auto scale = [factor](LayerTime& time) {
    time.forward *= factor;
    time.backward *= factor;
  };
  std::for_each(profile.layers.begin(), profile.layers.end(), scale);
  for (auto& step : profile.steps) std::for_each(step.begin(), step.end(), scale);
}

}  // namespace detail
}  // namespace simsync
