// What an optimizer keeps for every weight, and what its step moves.
#pragma once

namespace simsync {

enum class Optimizer {
  Sgd,       ///< no state
  Momentum,  ///< a momentum per weight
  Adam,      ///< two moments per weight
};
const char* name_of(Optimizer optimizer);

struct OptimizerState {
  Optimizer optimizer = Optimizer::Momentum;
  /// Weights and gradients in half precision beside an fp32 copy of the weights and fp32 state, as Megatron-LM and
  /// DeepSpeed train in bf16. No effect on weights of four bytes.
  bool master_weights = false;
  bool fp32_gradients = false;  ///< gradients of half precision add up and travel in fp32 (Megatron-LM, nanotron)

  /// Bytes of state per weight, where a weight has `width` bytes: the copy counts as state.
  [[nodiscard]] double bytes(double width) const;
  /// Bytes that a step reads and writes per weight.
  [[nodiscard]] double update_bytes(double width) const;
  friend bool operator==(const OptimizerState&, const OptimizerState&) = default;
};

}  // namespace simsync
