// How one shard of a variable is synchronized.
#pragma once
#include <variant>

#include "platforms/cluster.hpp"

namespace simsync {

enum class CollectiveAlgorithm {
  Auto,  ///< what the cluster's library would choose
  Best,  ///< the fastest of those below
  Ring,
  DoubleBinaryTree,
  HalvingDoubling,
  Hierarchical,
  BroadcastReduce,
  Pairwise,  ///< every rank to every other, directly: no all-reduce, and no choice of a strategy
};

/// Whether it names a rule by which an algorithm is chosen, not an algorithm.
constexpr bool is_choice(CollectiveAlgorithm algorithm) {
  return algorithm == CollectiveAlgorithm::Auto || algorithm == CollectiveAlgorithm::Best;
}

/// Gradient encoding on the wire.
enum class Compressor { None, Cast32, Fp16, PowerSgd };

/// A parameter server holds the variable (or shard), sums the gradients and applies the optimizer.
struct PsSynchronizer {
  Place server;                    ///< host (gpu == -1) or GPU that stores and updates it
  bool local_replication = false;  ///< one copy per host refreshed once; GPUs of the host read it locally
  bool sync = true;                ///< false: no coordination between workers at all
  int staleness = 0;               ///< steps a replica may run ahead; 0 is bulk synchronous
  /// Gradients of one host are summed there before one message leaves (AutoDist, BytePS).
  bool local_aggregation = true;
  friend bool operator==(const PsSynchronizer&, const PsSynchronizer&) = default;
};

struct AllReduceSynchronizer {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::Auto;
  int group = -1;  ///< members of one group are fused into one collective; -1: on its own
  friend bool operator==(const AllReduceSynchronizer&, const AllReduceSynchronizer&) = default;
};

/// Workers exchange the two factors of a dense layer's gradient (Poseidon's sufficient-factor broadcasting).
struct SfbSynchronizer {
  friend bool operator==(const SfbSynchronizer&, const SfbSynchronizer&) = default;
};

/// Ranks share it out among themselves as GraphStrategy::sharding says (ZeRO, FSDP).
struct ShardedSynchronizer {
  friend bool operator==(const ShardedSynchronizer&, const ShardedSynchronizer&) = default;
};

using Synchronizer = std::variant<PsSynchronizer, AllReduceSynchronizer, SfbSynchronizer, ShardedSynchronizer>;

}  // namespace simsync
