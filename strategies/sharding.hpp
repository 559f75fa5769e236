// How ranks share out parameters, gradients and optimizer state: ZeRO and FSDP.
#pragma once
#include <optional>

#include "base/units.hpp"
#include "models/model.hpp"

namespace simsync {

/// Of variables with a ShardedSynchronizer. Layers are gathered and reduced in units: the layers of one block, that is
/// those whose names agree up to their first number (`transformer.h.0`); all layers outside of blocks are one unit.
/// Sources: Rajbhandari et al., "ZeRO", 2020; Zhao et al., "PyTorch FSDP", 2023.
struct Sharding {
  /// What a rank keeps only its share of: 1 optimizer state, 2 gradients, too, 3 parameters, too. Below 3 the
  /// parameters are gathered once a step, at 3 also for the backward pass.
  int stage = 3;
  /// Consecutive ranks that share one copy; it divides the number of workers. 0: all. Fewer than all is hybrid shard:
  /// gradients of the same share are all-reduced over the groups.
  int group = 0;
  /// Stage 3: parameters of a block are freed after its forward pass and gathered again for its backward pass.
  bool reshard_after_forward = true;
  /// Stage 3: units that are gathered ahead of the one that is computed.
  int prefetch = 1;
  /// From stage 2 on. true: gradients are reduced in every micro-step; false: in the last, and kept whole until then
  /// (PyTorch's no_sync). Below, they are reduced in the last.
  bool reduce_every_micro_step = true;
  /// Below stage 3. true: a unit waits for its own parameters; false: the step begins with all of them.
  bool overlap_gather = true;
  /// Stage 1. true: a rank owns whole variables and broadcasts them after its update, as InternEvo and PyTorch's
  /// ZeroRedundancyOptimizer do; false: every variable is shared out evenly.
  bool whole_variables = false;
  Bytes min_unit{0};  ///< neighboring blocks are merged until they have so many bytes of parameters
  /// Of gathered parameters and reduced gradients; absent: two bytes where the profile computes in half precision, else
  /// the variable's own. Gradients of weights in half precision take four with OptimizerState::fp32_gradients.
  std::optional<DType> param_dtype;
  std::optional<DType> reduce_dtype;
  friend bool operator==(const Sharding&, const Sharding&) = default;

  [[nodiscard]] bool reduces_early() const { return stage >= 2 && reduce_every_micro_step; }
  /// Ranks per group among so many workers.
  [[nodiscard]] int group_of(int workers) const { return group == 0 ? workers : group; }
};

}  // namespace simsync
