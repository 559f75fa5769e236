#include "models/memory.hpp"

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "models/precision.hpp"

namespace simsync {
namespace {

/// Bytes of a device, so that sums of large models keep their last digit.
using Amounts = std::vector<double>;

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
        kept_(model.layer_count(), 0.0),
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

  /// Of what a layer leaves, kept from the forward pass on.
  [[nodiscard]] double kept(LayerId id) const { return kept_[id]; }
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
    (again ? made_[block_end_[writer]] : kept_[writer]) += bytes;
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
  Amounts kept_;
  Amounts made_;
  Amounts freed_;
};

std::vector<LayerId> ends_of(const Model& model, const MemoryDemand& demand) {
  return demand.passes.ends.empty() ? std::vector<LayerId>{model.layer_count()} : demand.passes.ends;
}

const std::vector<ChunkPass>& order_of(const MemoryDemand& demand) {
  using Kind = ChunkPass::Kind;
  static const std::vector<ChunkPass> kOneAfterTheOther{{Kind::Forward}, {Kind::Backward}, {Kind::Release}};
  return demand.passes.ends.empty() ? kOneAfterTheOther : demand.passes.order;
}

/// Of one chunk of a stage's layers.
struct ChunkMemory {
  double kept = 0.0;  ///< activations of a forward pass
  // At the worst moment of a backward pass, besides what forward passes have left:
  double activations = 0.0;
  double gradients = 0.0;  ///< of variables
  [[nodiscard]] double more() const { return activations + gradients; }
};

/// `made`: bytes of gradients of variables that are there before the backward pass; it adds `gradients`, by layer.
std::vector<ChunkMemory> chunk_memories(const Activations& activations, const std::vector<LayerId>& ends, double made,
                                        const Amounts& gradients) {
  std::vector<ChunkMemory> out(ends.size());
  for (std::size_t chunk = ends.size(); chunk-- > 0;) {
    double most = -std::numeric_limits<double>::infinity();
    double alive = 0.0;
    for (LayerId id = ends[chunk]; id-- > (chunk > 0 ? ends[chunk - 1] : 0);) {
      out[chunk].kept += activations.kept(id);
      alive += activations.made_before(id);
      made += gradients[id];
      const double now = alive + activations.gradients(id);
      if (now + made > most) {
        most = now + made;
        out[chunk].activations = now;
        out[chunk].gradients = made;
      }
      alive -= activations.freed_after(id);
    }
  }
  return out;
}

}  // namespace

MemoryNeed memory_need(const Model& model, const MemoryDemand& demand) {
  SIMSYNC_ASSERT(demand.variables.empty() || demand.variables.size() == model.variables().size());
  Amounts gradients(model.layer_count(), 0.0);
  // Sums in fp32 are a buffer of their own.
  const bool whole_step = demand.accumulates || demand.optimizer.fp32_gradients;
  double weights = 0.0;
  double state = 0.0;
  double made = 0.0;
  for (VariableId id = 0; id < model.variables().size(); ++id) {
    const Variable& variable = model.variable(id);
    const HeldVariable held = demand.variables.empty() ? HeldVariable{} : demand.variables[id];
    const double width = weight_width(variable, demand.precision);
    const auto elements = static_cast<double>(variable.elements());
    weights += held.weights * elements * width;
    state += held.state * elements * demand.optimizer.bytes(width);
    const double gradient =
        held.gradient * elements * gradient_width(variable, demand.precision, demand.optimizer.fp32_gradients);
    (whole_step ? made : gradients[variable.layer]) += gradient;
  }
  MemoryNeed need{
      .weights = whole(weights), .state = whole(state), .buffers = demand.buffers, .gathered = demand.gathered};
  const Activations activations(model, demand);
  const std::vector<ChunkMemory> chunks = chunk_memories(activations, ends_of(model, demand), made, gradients);
  double alive = 0.0;
  double most = -1.0;
  for (const ChunkPass& pass : order_of(demand)) {
    const ChunkMemory& chunk = chunks[static_cast<std::size_t>(pass.chunk)];
    if (pass.kind == ChunkPass::Kind::Forward) alive += chunk.kept;
    if (pass.kind == ChunkPass::Kind::Release) alive -= chunk.kept;
    if (pass.kind != ChunkPass::Kind::Backward || alive + chunk.more() <= most) continue;
    most = alive + chunk.more();
    need.gradients = whole(chunk.gradients);
    need.activations = whole(alive + chunk.activations);
  }
  return need;
}

}  // namespace simsync
