// The memory of a device that a training step needs.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "models/blocks.hpp"
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

/// One pass of a micro-batch through a chunk of a pipeline stage's model.
struct ChunkPass {
  enum class Kind : std::uint8_t {
    Forward,
    Backward,
    Release,  ///< nothing needs the activations of the forward pass any longer
  };
  Kind kind = Kind::Forward;
  int chunk = 0;
};

/// What a pipeline stage computes in a step.
struct StagePasses {
  std::vector<LayerId> ends;  ///< by chunk, which are runs of layers: the layer after its last one
  std::vector<ChunkPass> order;
};

/// What decides a rank's memory besides the model.
struct MemoryDemand {
  std::int64_t batch = 1;          ///< samples on the rank at a time: of a micro-step
  std::string precision = "fp32";  ///< fp32, tf32, amp, fp16 or bf16
  bool accumulates = false;        ///< over several micro-steps: gradients are there from the start
  StagePasses passes = {};         ///< of a pipeline stage; empty: one micro-step after the other goes forward and back
  Recompute recompute = Recompute::None;
  std::vector<HeldVariable> variables = {};  ///< by VariableId; empty: all as HeldVariable says
  Bytes buffers = {};                        ///< of the communication library
  Bytes gathered = {};                       ///< of sharded variables: what is whole for a while
  OptimizerState optimizer = {};
};

/// By what it consists of. Gradients and activations are those of the moment at which both together are most: while a
/// backward pass goes on, the one grow and the others are freed.
struct MemoryNeed {
  Bytes weights;
  Bytes state;  ///< of the optimizer
  Bytes buffers;
  Bytes gathered = {};
  Bytes gradients = {};    ///< of variables
  Bytes activations = {};  ///< and their gradients
  [[nodiscard]] Bytes total() const { return weights + state + buffers + gathered + gradients + activations; }
};

/// What PyTorch keeps for the backward pass. A layer keeps its input, its output or neither (Layer::saves_input,
/// saves_output), one copy for all readers, and masks of dropouts. A loss that is no single kernel keeps the logarithms
/// of its softmax in fp32; in half precision it makes fp32 copies of the logits, too. While a layer's backward pass
/// runs, the gradients of its input and its output are there. With recomputation a block keeps what its other blocks
/// read and what is not computed again, and one block at a time is whole. Half precision has two bytes an activation
/// and, without `amp`, two a weight and a gradient.
///
/// Not counted: workspaces of convolutions, the framework's own memory and what its allocator loses to fragments.
/// Layers that do not tell their output count for nothing.
MemoryNeed memory_need(const Model& model, const MemoryDemand& demand);

}  // namespace simsync
