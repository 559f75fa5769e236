// The units in which sharded parameters are gathered and their gradients reduced.
#pragma once
#include <string>
#include <vector>

#include "models/model.hpp"
#include "models/profile.hpp"
#include "strategies/stage_model.hpp"
#include "strategies/strategy.hpp"

namespace simsync {

/// Neighboring layers of some blocks, or all layers outside of blocks.
struct Unit {
  std::string label;  ///< `transformer.h.0`, `transformer.h.0 ... transformer.h.3`; `root` outside of blocks
  bool root = false;
  LayerId first = 0;  ///< the root begins with the model
  LayerId last = 0;   ///< and ends with it
  std::vector<VariableId> variables;
};

/// Ranks that share out a sharded variable: those of a shard group, and of experts those of them that have the same.
int shard_ranks(const GraphStrategy& graph, GradientSum sum);
/// Replicas that have gradients of a variable, each of its own samples.
int summing_ranks(const GraphStrategy& graph, GradientSum sum);
/// All ranks whose gradients of a variable add up: of the tokens of tensor-parallel ranks (Stage), too.
int ranks_that_sum(const GraphStrategy& graph, GradientSum sum);

/// Sharded variables, each in one unit: the root, if it has any, and then the blocks in forward order, neighbors merged
/// while they have less than Sharding::min_unit. Of a variable that several layers share, its own layer counts.
/// `stage` is that of `model`, if it is one: then no unit has blocks of two of its chunks.
std::vector<Unit> units_of(const Model& model, const Strategy& strategy, const StageModel* stage = nullptr);
/// Those of some variables of a stage that these ranks share out: Replicas, the variables whose gradients
/// tensor-parallel ranks sum besides (Stage) among them, or Experts.
std::vector<VariableId> shared_among(GradientSum ranks, std::vector<VariableId> variables, const StageModel& stage);
/// The units of a stage with these variables alone; units without any are left out.
std::vector<Unit> units_among(GradientSum ranks, std::vector<Unit> units, const StageModel& stage);

/// What each rank of a shard group owns where variables stay whole (Sharding::whole_variables): the largest first to
/// the first rank of those that own least, as InternEvo (hybrid_zero_optim.py, _partition_param_list) and PyTorch's
/// ZeroRedundancyOptimizer do. Sharded variables only.
std::vector<std::vector<VariableId>> owned_variables(const Model& model, const Strategy& strategy);

/// Of the elements of all sharded variables those of the rank that updates most: 1/P where all are shared out evenly.
double largest_share(const Model& model, const Strategy& strategy);

/// Of some sharded variables of `model`, as a whole: bytes that are gathered, and of gradients that are reduced.
double gathered_bytes(const Model& model, const std::vector<VariableId>& variables, const Sharding& sharding,
                      const Profile& profile);
double reduced_bytes(const Model& model, const std::vector<VariableId>& variables, const Sharding& sharding,
                     const Profile& profile);
/// Of the gradient of a table that `stage` shares with another (StageModel::shared_copy), the bytes that a rank of each
/// sums with the other's. All of it, also where ranks share out the optimizer's state alone (Megatron-LM core_v0.19.0,
/// megatron/core/distributed/finalize_model_grads.py: finish_grad_sync reduce-scatters, then
/// _allreduce_word_embedding_grads takes the whole main_grad); from stage 2 of ZeRO on a rank has only its share.
double tied_table_bytes(const StageModel& stage, const Strategy& of_stage, const Profile& profile);

}  // namespace simsync
