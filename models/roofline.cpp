#include "models/roofline.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "models/product_time.hpp"

namespace simsync {
namespace detail {
namespace {

/// How often a pass reads its input and writes (or reads) its output, and how many kernels it is.
struct Traffic {
  double input = 1.0;
  double output = 1.0;
  double weights = 0.0;
  double kernels = 1.0;
};

struct Passes {
  Traffic forward;
  Traffic backward;
};

/// Derived from what each kernel must touch: x input, y output, dx and dy their gradients, w weights.
Passes passes_of(LayerKind kind) {
  switch (kind) {
    // Forward x, w -> y. Backward dy, w -> dx and dy, x -> dw.
    case LayerKind::Conv:
    case LayerKind::Dense:
    case LayerKind::Attention:
    case LayerKind::Recurrent:
      return {{1.0, 1.0, 1.0, 1.0}, {2.0, 2.0, 2.0, 2.0}};
    // Statistics read x, the second pass reads it again; backward reads x and dy twice each and writes dx.
    case LayerKind::Norm:
      return {{2.0, 1.0, 1.0, 1.0}, {3.0, 2.0, 2.0, 1.0}};
    // Backward reads dy and y (or a mask) and writes dx.
    case LayerKind::Activation:
      return {{1.0, 1.0, 0.0, 1.0}, {1.0, 2.0, 0.0, 1.0}};
    // Forward reads the rows and writes them; a dense gradient is cleared, then rows are added to it.
    case LayerKind::Embedding:
      return {{1.0, 2.0, 0.0, 1.0}, {1.0, 3.0, 1.0, 2.0}};
    // Logits to log-probabilities to the gradient of the logits.
    case LayerKind::Loss:
      return {{3.0, 1.0, 0.0, 2.0}, {2.0, 1.0, 0.0, 2.0}};
    case LayerKind::Pool:
    case LayerKind::Elementwise:
      return {{1.0, 1.0, 0.0, 1.0}, {1.0, 1.0, 0.0, 1.0}};
  }
  return {};
}

/// Direct work over that of Winograd's algorithm F(2x2, 3x3) (Lavin and Gray, CVPR 2016), 2.25 without its transforms.
/// DeepBench's convolutions in fp32 (cuDNN, six GPUs of NVIDIA, and MIOpen on one of AMD): direct work per second of
/// those with windows of 3 x 3 and stride 1 over that of the others, the three passes of a step together: 2.36 V100,
/// 2.27 P100, 2.19 GTX 1080 Ti, 2.14 TITAN Xp, 1.70 MI25, 1.64 TITAN X Maxwell, 1.63 M40; the median without one of
/// them is 1.92 to 2.16.
constexpr double kWinograd = 2.0;

/// Matrix units have no such kernels.
bool by_winograd(const Layer& layer, const Roofline& roofline) {
  const auto& convolution = layer.operation.convolution;
  const auto fits = [](const WindowAxis& axis) { return axis.kernel == 3 && axis.stride == 1; };
  return roofline.winograd && convolution && convolution->groups == 1 && fits(convolution->height) &&
         fits(convolution->width);
}

bool is_product(LayerKind kind) {
  return kind == LayerKind::Conv || kind == LayerKind::Dense || kind == LayerKind::Attention ||
         kind == LayerKind::Recurrent;
}

/// A fused kernel of attention pads its tiles; of several products the slowest counts.
FlopsPerSecond rate_of(const Layer& layer, const Roofline& roofline) {
  FlopsPerSecond rate = roofline.compute_efficiency * roofline.peak;
  if (layer.operation.first_product_again) return roofline.attention.value_or(rate);
  for (const MatrixProduct& product : layer.operation.products) rate = std::min(rate, product_rate(product, roofline));
  return rate;
}

/// Bytes of `variable` that one step touches.
double touched_bytes(const Variable& variable, std::int64_t batch) {
  const auto bytes = static_cast<double>(variable.bytes().count);
  if (!variable.sparse || variable.shape.empty()) return bytes;
  const auto rows = static_cast<double>(variable.shape.front());
  return bytes * std::min(1.0, variable.lookups_per_sample * static_cast<double>(batch) / rows);
}

}  // namespace

LayerTime estimate_layer(const Model& model, LayerId id, const Roofline& roofline, std::int64_t batch) {
  const Layer& layer = model.layer(id);
  const LayerTraffic traffic = layer_traffic(model, id, batch, roofline.element_bytes);
  const auto samples = static_cast<double>(batch);
  const FlopsPerSecond rate = rate_of(layer, roofline);
  const BytesPerSecond memory{roofline.memory.value() * roofline.memory_efficiency};
  const double saved = by_winograd(layer, roofline) ? kWinograd : 1.0;
  const auto pass = [&](const PassTraffic& moved, Flops per_sample) {
    const Flops work = samples / saved * per_sample;
    const bool ramps = is_product(layer.kind) && work.value() > 0.0;
    const Flops ramp = ramps ? moved.kernels * roofline.half_efficiency : Flops{0.0};
    const Seconds transfer{moved.bytes / memory.value()};
    return std::max((work + ramp) / rate, transfer) + moved.kernels * roofline.launch;
  };
  return {pass(traffic.forward, layer.forward_flops), pass(traffic.backward, layer.backward_flops)};
}

Seconds estimate_update(const Model& model, const Roofline& roofline, std::int64_t batch) {
  constexpr double kPasses = 5.0;
  double bytes = 0.0;
  for (const Variable& variable : model.variables()) bytes += kPasses * touched_bytes(variable, batch);
  const BytesPerSecond memory{roofline.memory.value() * roofline.memory_efficiency};
  return Seconds{bytes / memory.value()} + static_cast<double>(model.variables().size()) * roofline.launch;
}

}  // namespace detail

LayerTraffic layer_traffic(const Model& model, LayerId id, std::int64_t batch, double element_bytes) {
  const Layer& layer = model.layer(id);
  const double element_scale = element_bytes / 4.0;
  const bool recurrent = layer.kind == LayerKind::Recurrent;
  const double steps = recurrent ? std::max(layer.dense_rows, 1.0) : 1.0;
  double weights = 0.0;
  for (const VariableId v : layer.variables) weights += detail::touched_bytes(model.variable(v), batch);
  // A recurrent layer reads its weights again in every step.
  weights *= element_scale * steps;
  const auto pass = [&](const detail::Traffic& traffic) {
    const double activations = element_scale * static_cast<double>(batch) *
                               (traffic.input * layer.input_bytes + traffic.output * layer.output_bytes);
    return PassTraffic{activations + traffic.weights * weights, traffic.kernels * steps};
  };
  const detail::Passes passes = detail::passes_of(layer.kind);
  return {pass(passes.forward), pass(passes.backward)};
}

Profile estimate_profile(const Model& model, const Roofline& roofline, std::int64_t batch) {
  SIMSYNC_ASSERT(batch >= 1);
  Profile profile;
  profile.model = model.name();
  profile.batch = batch;
  profile.source = ProfileSource::Roofline;
  profile.provenance = "estimated from floating point operations and bytes";
  profile.layers.reserve(model.layer_count());
  for (LayerId id = 0; id < model.layer_count(); ++id)
    profile.layers.push_back(detail::estimate_layer(model, id, roofline, batch));
  profile.update = detail::estimate_update(model, roofline, batch);
  return profile;
}

}  // namespace simsync
