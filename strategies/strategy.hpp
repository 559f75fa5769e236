// What is synchronised how: a value object with no notion of time.
//
// Two levels, after AutoDist: a graph level for what concerns the whole step, and one entry per variable. An entry
// that is partitioned holds one synchronizer per shard, so shards of one variable may mix parameter servers and
// all-reduce. A Strategy here is resolved: nothing is left to choose except what depends on time (fusion by
// cycle or by cost), which compile decides from the profile.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "models/model.hpp"
#include "platforms/cluster.hpp"

namespace simsync {

enum class CollectiveAlgorithm { Auto, Ring, DoubleBinaryTree, HalvingDoubling, Hierarchical, BroadcastReduce };

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
};

struct AllReduceSynchronizer {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::Auto;
  int group = -1;                  ///< members of one group are fused into one collective; -1: on its own
};

/// Workers exchange the two factors of a dense layer's gradient (Poseidon's sufficient-factor broadcasting).
struct SfbSynchronizer {};

using Synchronizer = std::variant<PsSynchronizer, AllReduceSynchronizer, SfbSynchronizer>;

/// One shard of a variable; an unpartitioned variable has exactly one.
struct Shard {
  std::int64_t elements = 0;   ///< sums to the variable's elements over its shards
  Synchronizer synchronizer;
};

/// How one variable is handled.
struct VariableStrategy {
  VariableId variable = 0;
  int partition_axis = -1;     ///< axis that is split; -1: not partitioned
  std::vector<Shard> shards;
  Compressor compressor = Compressor::None;
  int powersgd_rank = 4;
  int priority = 0;            ///< smaller is more urgent; only a Priority queue looks at it
};

/// When gradients leave.
enum class Overlap {
  None,      ///< after the whole backward pass
  WaitFree,  ///< as soon as the layer's backward has ended
};
/// In which order transfers that are ready are served.
enum class Ordering { Fifo, Priority };
/// What the next forward pass waits for.
enum class Gate {
  All,          ///< every synchronisation (DDP, Horovod)
  PerVariable,  ///< each layer for its own variables (TensorFlow PS, BytePS, ByteScheduler, P3)
};
/// When workers read variables from their servers.
enum class Pull {
  AfterUpdate,  ///< as soon as the server has applied the update
  AtStepStart,  ///< when the next step begins, which is when this one has ended everywhere (TensorFlow)
};
/// Who applies the optimizer to variables on parameter servers.
enum class UpdateAt { Server, Worker };

/// How all-reduced gradients are merged into messages. Orders are those of the backward pass.
enum class FusionKind {
  Groups,          ///< by AllReduceSynchronizer::group (AutoDist chunks)
  None,            ///< one collective per variable or shard
  Buckets,         ///< PyTorch DDP: close a bucket at `first_limit`, then at `limit`
  Cycle,           ///< Horovod: every `cycle`, merge what is ready up to `threshold`
  MergedGradient,  ///< MG-WFBP: merge while it shortens the step under start-up + bytes/rate
  Single,          ///< everything in one message
};
struct Fusion {
  FusionKind kind = FusionKind::Groups;
  Bytes first_limit{1 << 20};
  Bytes limit{25 << 20};
  Bytes threshold{64 << 20};
  Seconds cycle{5e-3};
  bool copies = false;   ///< a copy into and out of the fusion buffer costs device memory bandwidth
};

/// Limits of a scheduled communication queue (P3, ByteScheduler, BytePS).
struct Scheduling {
  Ordering ordering = Ordering::Fifo;
  Bytes partition{0};   ///< tensors are cut into pieces of at most this size; 0: whole
  Bytes credit{0};      ///< bytes in flight per worker; 0: no limit (FIFO all at once)
};

struct GraphStrategy {
  int workers = 0;                      ///< data-parallel replicas: the first `workers` GPUs of the cluster
  Overlap overlap = Overlap::WaitFree;
  Gate gate = Gate::All;
  Pull pull = Pull::AfterUpdate;
  UpdateAt update_at = UpdateAt::Server;
  Fusion fusion;
  Scheduling scheduling;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::Auto;  ///< for synchronizers that say Auto
  /// One communication stream per device, in launch order (NCCL); false: collectives run as they become ready.
  bool serial_collectives = true;
  /// Software cost that the framework adds to every collective or push (negotiation, RPC).
  Seconds per_operation_cost{0};
  /// How the bytes of a parameter-server message travel: concurrent streams per worker-server pair.
  int streams_per_server = 1;
};

struct Strategy {
  std::string name;     ///< builder or file name
  GraphStrategy graph;
  std::vector<VariableStrategy> variables;  ///< every variable of the model exactly once, by VariableId
};

/// @throws PlanError unless the strategy covers every variable of `model` exactly once, shards add up, sparse
/// variables are split on axis 0 only, and every server is a place of `cluster`.
void check(const Strategy& strategy, const Model& model, const Cluster& cluster);

}  // namespace simsync
