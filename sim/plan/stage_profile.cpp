#include "sim/plan/stage_profile.hpp"

#include "models/product_time.hpp"
#include "models/roofline.hpp"

namespace simsync {
namespace {

/// Of a layer's products by their shapes: narrow parts are slower than their share. Of other layers by work and bytes.
LayerTime estimate(const Model& model, LayerId id, const Profile& whole) {
  const Operation& operation = model.layer(id).operation;
  if (!operation.products.empty()) return product_time(operation, whole.batch, whole.roofline);
  return detail::estimate_layer(model, id, whole.roofline, whole.batch);
}

double ratio(Seconds part, Seconds whole) {
  return whole.value() > 0.0 ? part / whole : 1.0;
}

}  // namespace

Profile stage_profile(const Profile& whole, const Model& model, const StageModel& stage) {
  Profile out = whole;
  out.layers.clear();
  out.recomputed.clear();
  for (auto& step : out.steps) step.clear();
  for (LayerId id = 0; id < stage.model.layer_count(); ++id) {
    const std::optional<LayerId> of_whole = stage.layer_of[id];
    double forward = 0.0;
    double backward = 0.0;
    if (of_whole) {
      const LayerTime part = estimate(stage.model, id, whole);
      const LayerTime all = estimate(model, *of_whole, whole);
      forward = ratio(part.forward, all.forward);
      backward = ratio(part.backward, all.backward);
    }
    const auto scaled = [&](const LayerTime& time) {
      return LayerTime{.forward = forward * time.forward, .backward = backward * time.backward};
    };
    const LayerId source = of_whole.value_or(0);
    out.layers.push_back(scaled(whole.layers[source]));
    for (std::size_t step = 0; step < whole.steps.size(); ++step)
      out.steps[step].push_back(scaled(whole.steps[step][source]));
    if (!whole.recomputed.empty()) out.recomputed.push_back(of_whole && whole.recomputed[*of_whole]);
  }
  const auto bytes = static_cast<double>(model.parameter_bytes().count);
  const auto held = static_cast<double>(stage.model.parameter_bytes().count);
  out.update = bytes > 0.0 ? held / bytes * whole.update : Seconds{};
  return out;
}

}  // namespace simsync
