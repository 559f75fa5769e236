#include "models/memory.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace simsync {
namespace {

/// Bytes of a device, so that sums of large models keep their last digit.
using Amounts = std::vector<double>;

Bytes whole(double bytes) {
  return {static_cast<std::int64_t>(bytes)};
}

/// Whether the backward pass of a layer reads what the layer read. Dropouts, which count as activations, keep a mask; a
/// ReLU may keep its output in place of its input.
bool keeps_input(LayerKind kind) {
  switch (kind) {
    case LayerKind::Conv:
    case LayerKind::Dense:
    case LayerKind::Norm:
    case LayerKind::Pool:
    case LayerKind::Attention:
    case LayerKind::Recurrent:
    case LayerKind::Loss:
      return true;
    case LayerKind::Embedding:
    case LayerKind::Activation:
    case LayerKind::Elementwise:
      return false;
  }
  return false;
}

/// Softmax and dropout of the scores, which a fused attention computes again.
bool is_attention_matrix(const Layer& writer, const Layer& reader) {
  return writer.kind == LayerKind::Activation && reader.kind == LayerKind::Attention;
}

/// The first layer whose backward pass reads the output of `id`, after which it is freed; `layer_count()`: none does.
LayerId last_reader(const Model& model, LayerId id) {
  const Layer& writer = model.layer(id);
  if (writer.kind == LayerKind::Recurrent) return id;
  LayerId reader = model.layer_count();
  const auto [begin, end] = boost::adjacent_vertices(id, model.graph());
  for (auto next = begin; next != end; ++next) {
    const Layer& layer = model.layer(*next);
    if (keeps_input(layer.kind) && !is_attention_matrix(writer, layer)) reader = std::min<LayerId>(reader, *next);
  }
  return reader;
}

/// by_layer[l]: outputs that are freed with the backward pass of layer l.
Amounts freed_with(const Model& model, const MemoryDemand& demand) {
  const bool single = demand.precision == "fp32" || demand.precision == "tf32";
  const double scale = static_cast<double>(demand.batch) * (single ? 1.0 : 0.5);
  Amounts by_layer(model.layer_count(), 0.0);
  for (LayerId id = 0; id < model.layer_count(); ++id) {
    const LayerId reader = last_reader(model, id);
    if (reader < model.layer_count()) by_layer[reader] += scale * model.layer(id).output_bytes;
  }
  return by_layer;
}

}  // namespace

MemoryBound memory_bound(const Model& model, const MemoryDemand& demand) {
  SIMSYNC_ASSERT(demand.variables.empty() || demand.variables.size() == model.variables().size());
  const double scale = demand.precision == "fp16" || demand.precision == "bf16" ? 0.5 : 1.0;
  Amounts gradients(model.layer_count(), 0.0);
  double weights = 0.0;
  double state = 0.0;
  for (VariableId id = 0; id < model.variables().size(); ++id) {
    const Variable& variable = model.variable(id);
    const HeldVariable held = demand.variables.empty() ? HeldVariable{} : demand.variables[id];
    const double bytes = scale * static_cast<double>(variable.bytes().count);
    const auto elements = static_cast<double>(variable.elements());
    weights += held.weights * bytes;
    state += held.state * elements * demand.optimizer.bytes(bytes / elements);
    gradients[variable.layer] += held.gradient * bytes;
  }
  MemoryBound bound{
      .weights = whole(weights), .state = whole(state), .buffers = demand.buffers, .gathered = demand.gathered};
  const Amounts freed = freed_with(model, demand);
  double alive = 0.0;
  for (const double bytes : freed) alive += bytes;
  double made = 0.0;
  double most = -1.0;
  for (LayerId id = model.layer_count(); id-- > 0;) {
    made += gradients[id];
    if (alive + made > most) {
      most = alive + made;
      bound.gradients = whole(made);
      bound.activations = whole(alive);
    }
    alive -= freed[id];
  }
  return bound;
}

}  // namespace simsync
