// The least memory of a device that a training step needs.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "models/model.hpp"
#include "models/optimizer.hpp"

namespace simsync {

/// Which share of one variable a rank holds, 0 to 1; rows that a step looks up count for nothing.
struct HeldVariable {
  double weights = 1.0;
  /// Until the gradients of all layers are there, as where one optimizer step follows the backward pass.
  double gradient = 1.0;
  double state = 1.0;  ///< of the optimizer
};

/// What decides a rank's memory besides the model.
struct MemoryDemand {
  std::int64_t batch = 1;                    ///< samples on the rank
  std::string precision = "fp32";            ///< fp32, tf32, amp, fp16 or bf16
  std::vector<HeldVariable> variables = {};  ///< by VariableId; empty: all as HeldVariable says
  Bytes buffers = {};                        ///< of the communication library
  Bytes gathered = {};                       ///< of sharded variables: what is whole for a while
  OptimizerState optimizer = {};
};

/// A lower bound, by what it consists of. Gradients and activations are those of the moment at which both together are
/// most: while the backward pass goes on, the one grow and the others are freed.
struct MemoryBound {
  Bytes weights;
  Bytes state;  ///< of the optimizer
  Bytes buffers;
  Bytes gathered = {};
  Bytes gradients = {};
  Bytes activations = {};
  [[nodiscard]] Bytes total() const { return weights + state + buffers + gathered + gradients + activations; }
};

/// What a step needs at least, if nothing is recomputed or offloaded. Of the activations only
/// those count that the backward pass reads: the inputs of products, normalizations, pools and losses, and the outputs
/// of recurrent layers. What an activation may overwrite, masks, workspaces, the attention matrix, the framework's own
/// memory and the gradients of activations are left out. Layers that do not tell their output count for nothing. Half
/// precision has two bytes an activation and, without `amp`, two a weight and a gradient.
MemoryBound memory_bound(const Model& model, const MemoryDemand& demand);

}  // namespace simsync
