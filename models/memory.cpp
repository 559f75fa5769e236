#include "models/memory.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "models/precision.hpp"

namespace simsync {
namespace {

/// Bytes of a device, so that sums of large models keep their last digit.
using Amounts = std::vector<double>;

constexpr double kFull = 4.0;  // bytes of fp32

Bytes whole(double bytes) {
  return {static_cast<std::int64_t>(bytes)};
}

/// The activations of a step while its backward pass goes from layer to layer.
class Activations {
public:
  Activations(const Model& model, const MemoryDemand& demand)
      : model_(model),
        single_(!has_half_activations(demand.precision)),
        batch_(static_cast<double>(demand.batch)),
        recomputed_(recomputed_layers(model, demand.recompute)),
        block_end_(model.layer_count()),
        made_(model.layer_count(), 0.0),
        freed_(model.layer_count(), 0.0) {
    for (LayerId id = 0; id < model.layer_count(); ++id) block_end_[id] = id;
    for (const Block& block : blocks_of(model))
      for (LayerId id = block.first; id <= block.last; ++id) block_end_[id] = block.last;
    for (LayerId id = 0; id < model.layer_count(); ++id) {
      add_output(id);
      keep(id, id, own_bytes(model.layer(id)), recomputed_[id]);
    }
  }

  /// Kept by the forward pass.
  [[nodiscard]] double at_start() const { return start_; }
  /// Computed again before the backward pass of a layer.
  [[nodiscard]] double made_before(LayerId id) const { return made_[id]; }
  [[nodiscard]] double freed_after(LayerId id) const { return freed_[id]; }
  /// The gradients of a layer's input and output.
  [[nodiscard]] double gradients(LayerId id) const {
    const Layer& layer = model_.layer(id);
    if (layer.kind == LayerKind::Loss) return layer.fp32_copies ? batch_ * layer.input_bytes : 0.0;
    double bytes = bytes_of(id);
    const auto [begin, end] = boost::inv_adjacent_vertices(id, model_.graph());
    for (auto before = begin; before != end; ++before) bytes += bytes_of(*before);
    return bytes;
  }

private:
  [[nodiscard]] double bytes_of(LayerId id) const {
    return (single_ ? 1.0 : 0.5) * batch_ * model_.layer(id).output_bytes;
  }

  /// Besides inputs and outputs.
  [[nodiscard]] double own_bytes(const Layer& layer) const {
    double bytes = batch_ * layer.mask_bytes;
    // The logarithms of the softmax; in half precision the logits in fp32, too.
    if (layer.fp32_copies) bytes += batch_ * layer.input_bytes * (single_ ? 1.0 : 2.0);
    return bytes;
  }

  /// Until the backward pass of `reader` has ended.
  void keep(LayerId writer, LayerId reader, double bytes, bool again) {
    (again ? made_[block_end_[writer]] : start_) += bytes;
    freed_[reader] += bytes;
  }

  /// The output of a layer, if anything reads it once more.
  void add_output(LayerId id) {
    const LayerId none = model_.layer_count();
    LayerId first_reader = model_.layer(id).saves_output ? id : none;
    bool leaves_block = false;
    const auto [begin, end] = boost::adjacent_vertices(id, model_.graph());
    for (auto next = begin; next != end; ++next) {
      const bool same_block = block_end_[*next] == block_end_[id];
      leaves_block = leaves_block || !same_block;
      // What is computed again needs what it reads.
      const bool again = recomputed_[*next] && !(recomputed_[id] && same_block);
      if (model_.layer(*next).saves_input || again) first_reader = std::min<LayerId>(first_reader, *next);
    }
    if (first_reader != none) keep(id, first_reader, bytes_of(id), recomputed_[id] && !leaves_block);
  }

  const Model& model_;
  bool single_;
  double batch_;
  std::vector<bool> recomputed_;
  std::vector<LayerId> block_end_;  ///< by layer: the last of its block, itself outside of blocks
  double start_ = 0.0;
  Amounts made_;
  Amounts freed_;
};

}  // namespace

MemoryNeed memory_need(const Model& model, const MemoryDemand& demand) {
  SIMSYNC_ASSERT(demand.variables.empty() || demand.variables.size() == model.variables().size());
  const double scale = has_half_weights(demand.precision) ? 0.5 : 1.0;
  Amounts gradients(model.layer_count(), 0.0);
  // Sums in fp32 are a buffer of their own.
  const bool whole_step = demand.accumulates || demand.optimizer.fp32_gradients;
  double weights = 0.0;
  double state = 0.0;
  double made = 0.0;
  for (VariableId id = 0; id < model.variables().size(); ++id) {
    const Variable& variable = model.variable(id);
    const HeldVariable held = demand.variables.empty() ? HeldVariable{} : demand.variables[id];
    const double bytes = scale * static_cast<double>(variable.bytes().count);
    const auto elements = static_cast<double>(variable.elements());
    weights += held.weights * bytes;
    state += held.state * elements * demand.optimizer.bytes(bytes / elements);
    const double gradient = held.gradient * (demand.optimizer.fp32_gradients ? kFull * elements : bytes);
    (whole_step ? made : gradients[variable.layer]) += gradient;
  }
  MemoryNeed need{
      .weights = whole(weights), .state = whole(state), .buffers = demand.buffers, .gathered = demand.gathered};
  const Activations activations(model, demand);
  double alive = std::max(1.0, demand.in_flight) * activations.at_start();
  double most = -1.0;
  for (LayerId id = model.layer_count(); id-- > 0;) {
    alive += activations.made_before(id);
    made += gradients[id];
    const double now = alive + activations.gradients(id);
    if (now + made > most) {
      most = now + made;
      need.gradients = whole(made);
      need.activations = whole(now);
    }
    alive -= activations.freed_after(id);
  }
  return need;
}

}  // namespace simsync
