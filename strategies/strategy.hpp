// What is synchronized how: a value object with no notion of time.
//
// Two levels, after AutoDist: a graph level for what concerns the whole step, and one entry per variable. An entry
// that is partitioned holds one synchronizer per shard, so shards of one variable may mix parameter servers and
// all-reduce. A Strategy here is resolved: nothing is left to choose except what depends on time (fusion by
// cycle or by cost), which compile decides from the profile.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "models/model.hpp"
#include "platforms/cluster.hpp"
#include "strategies/graph_strategy.hpp"
#include "strategies/synchronizer.hpp"

namespace simsync {

/// One shard of a variable; an unpartitioned variable has exactly one.
struct Shard {
  std::int64_t elements = 0;  ///< sums to the variable's elements over its shards
  Synchronizer synchronizer;
  friend bool operator==(const Shard&, const Shard&) = default;
};

inline constexpr int kWholeVariable = -1;  ///< partition_axis of a variable with one shard
inline constexpr int kFlatAxis = -2;       ///< partition_axis of a variable cut by elements, whatever its axes

/// How one variable is handled.
struct VariableStrategy {
  VariableId variable = 0;
  int partition_axis = kWholeVariable;  ///< axis that is split, or kWholeVariable, or kFlatAxis
  std::vector<Shard> shards;
  Compressor compressor = Compressor::None;
  int powersgd_rank = 4;
  /// Smaller is more urgent; only a Priority queue looks at it. Equal ones: by variable, then by shard.
  int priority = 0;
  /// The gradient of a sparse variable travels as the whole tensor (PyTorch's and MXNet's default for an
  /// embedding, Horovod's `sparse_as_dense`); false: only the rows that were looked up, with
  /// their indices; on an all-reduce synchronizer they are all-gathered, never fused. No effect on others.
  bool sparse_as_dense = false;
  friend bool operator==(const VariableStrategy&, const VariableStrategy&) = default;
};

struct Strategy {
  std::string name;  ///< builder or file name
  GraphStrategy graph;
  std::vector<VariableStrategy> variables;  ///< every variable of the model exactly once, by VariableId
  friend bool operator==(const Strategy&, const Strategy&) = default;
};

/// How far workers wait for each other: `sync` in every step, `ssp` (stale synchronous) at most `staleness` steps
/// behind for some variable, or at most `slack` steps by their clocks; `async` not at all for some variable; `backup`
/// in every step for all but the latest `backups`.
std::string mode_of(const Strategy& strategy);
/// Whether that is `sync`.
bool in_lock_step(const Strategy& strategy);

/// Whether ranks hold shares of a variable (ShardedSynchronizer), and whether they do of any.
bool is_sharded(const VariableStrategy& entry);
bool has_sharded(const Strategy& strategy);
/// The share of a variable's elements to which workers, not servers, apply the optimizer: each of them to all of these,
/// or all of them together where ranks hold shares.
double updated_by_workers(const VariableStrategy& entry, const GraphStrategy& graph);
/// Whether only the looked-up rows of this variable's gradient travel.
bool travels_sparse(const Variable& variable, const VariableStrategy& entry);

/// @throws PlanError unless the strategy covers every variable of `model` exactly once, shards add up, variables
/// that travel sparse are split on axis 0 only, sufficient factors are used for dense layers' matrices only,
/// and every server is a place of `cluster`.
void check(const Strategy& strategy, const Model& model, const Cluster& cluster);

}  // namespace simsync
