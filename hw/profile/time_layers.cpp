#include "hw/profile/time_layers.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "hw/profile/stages.hpp"
#include "models/layer_times.hpp"

namespace simsync {
namespace {

constexpr Seconds kUntimed{-1.0};

/// A model's stages in the order of a step, with the layer of each.
struct Step {
  std::vector<LayerId> timed;
  std::vector<LayerStages> stages;

  [[nodiscard]] std::vector<const Stage*> order() const {
    std::vector<const Stage*> out;
    for (const LayerStages& layer : stages) out.push_back(&layer.forward);
    std::for_each(stages.rbegin(), stages.rend(), [&](const LayerStages& layer) { out.push_back(&layer.backward); });
    return out;
  }

  /// Puts times in the order of the step back to their layers.
  [[nodiscard]] std::vector<LayerTime> by_layer(const std::vector<Seconds>& times, std::size_t layers) const {
    std::vector<LayerTime> out(layers, LayerTime{kUntimed, kUntimed});
    for (std::size_t i = 0; i < timed.size(); ++i) out[timed[i]] = {times[i], times[times.size() - 1 - i]};
    return out;
  }
};

Step prepare(const Model& model, std::int64_t batch, Backend& backend, std::vector<std::string>& untimed) {
  Step step;
  for (LayerId id = 0; id < model.layer_count(); ++id) {
    if (!has_kernels(model.layer(id))) {
      untimed.push_back(model.layer(id).name);
      continue;
    }
    step.timed.push_back(id);
    step.stages.push_back(make_stages(model, id, batch, backend));
  }
  return step;
}

}  // namespace

Seconds LayerTimings::sum_of_layers() const {
  std::vector<Seconds> sums;
  for (const auto& step : steps) {
    Seconds sum;
    for (const LayerTime& time : step) {
      if (time.forward >= Seconds{0.0}) sum += time.forward + time.backward;
    }
    sums.push_back(sum);
  }
  return median(std::move(sums));
}

Seconds LayerTimings::whole_step() const {
  return median(whole);
}

LayerTimings time_layers(const Model& model, const LayerTimingOptions& options, Backend& backend) {
  SIMSYNC_ASSERT(options.batch >= 1 && options.repeats >= 1);
  LayerTimings out;
  const Step step = prepare(model, options.batch, backend, out.untimed);
  const auto order = step.order();
  for (int i = 0; i < options.warm_up; ++i) {
    (void)backend.run(order);
    options.on_step();
  }
  for (int i = 0; i < options.repeats; ++i) {
    out.steps.push_back(step.by_layer(backend.run(order), model.layer_count()));
    options.on_step();
    out.whole.push_back(backend.run_whole(order));
    options.on_step();
  }
  return out;
}

}  // namespace simsync
