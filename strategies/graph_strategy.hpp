// What a strategy decides for the whole step: overlap, order, fusion and what the next step waits for.
#pragma once
#include <optional>

#include "base/units.hpp"
#include "models/blocks.hpp"
#include "strategies/model_parallel.hpp"
#include "strategies/sharding.hpp"
#include "strategies/synchronizer.hpp"

namespace simsync {

/// When gradients leave.
enum class Overlap {
  None,      ///< after the whole backward pass
  WaitFree,  ///< as soon as the layer's backward has ended
};
/// In which order transfers that are ready are served.
enum class Ordering { Fifo, Priority };
/// What the next forward pass waits for.
enum class Gate {
  All,          ///< every synchronization (DDP, Horovod, TensorFlow: the next step starts when this one returned)
  PerVariable,  ///< each layer for its own variables (BytePS, ByteScheduler, P3)
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
  bool copies = false;  ///< a copy into and out of the fusion buffer costs device memory bandwidth
  friend bool operator==(const Fusion&, const Fusion&) = default;
};

/// Limits of a scheduled communication queue (P3, ByteScheduler, BytePS).
struct Scheduling {
  Ordering ordering = Ordering::Fifo;
  Bytes partition{0};  ///< tensors are cut into pieces of at most this size; 0: whole
  /// Bytes in flight per worker, counted for pushes and pulls apart; 0: no limit, all at once. One credit for the
  /// way there and back would let workers wait for each other's pieces for ever.
  Bytes credit{0};
  /// false: a piece starts while any credit is left, which may go below zero (ByteScheduler; with a credit of one
  /// byte one message is in service at a time: P3). true: a piece longer than what is left lets shorter ones pass
  /// (BytePS).
  bool credit_is_strict = false;
  /// true: `ordering` holds for pulls only; pushes leave as they become ready (TicTac).
  bool pulls_only = false;
  friend bool operator==(const Scheduling&, const Scheduling&) = default;
};

/// How much of the communication a framework's transport hides behind the backward pass: the share of it (0 to 1)
/// beside which gradients move. 1: a gradient leaves as soon as it is ready. 0: none leaves before the pass has ended.
/// Only with Overlap::WaitFree.
struct OverlapShares {
  double in_node = 1.0;        ///< between the devices of a node, and between them and their host
  double between_nodes = 1.0;  ///< what crosses the network
  friend bool operator==(const OverlapShares&, const OverlapShares&) = default;
};

/// What remote procedure calls to servers cost the host of a worker (serialization, copies, dispatch). A host handles
/// one message after another, those of its pushes and those of its pulls.
struct RpcCosts {
  Seconds per_message{0};
  std::optional<BytesPerSecond> rate;  ///< at which payload is copied; absent: copies cost nothing
  [[nodiscard]] Seconds of(double bytes, int messages) const;
  friend bool operator==(const RpcCosts&, const RpcCosts&) = default;
};

struct GraphStrategy {
  int workers = 0;         ///< ranks: the first `workers` GPUs of the cluster
  ModelParallel parallel;  ///< how many of them compute a replica of the model together; a replica has the batch
  /// Gradient accumulation: parts of a worker's batch that go through forward and backward pass one after another, each
  /// as large, before one update.
  int micro_steps = 1;
  Recompute recompute = Recompute::None;
  Overlap overlap = Overlap::WaitFree;
  OverlapShares collectives_overlap;
  OverlapShares servers_overlap;
  RpcCosts rpc;
  /// Whether a sum or an update of a large tensor on a host uses all its threads (TensorFlow, whose operations are cut
  /// into blocks for a pool of threads). false: one thread (ps-lite, BytePS).
  bool parallel_host_ops = false;
  Gate gate = Gate::All;
  UpdateAt update_at = UpdateAt::Server;
  Fusion fusion;
  Scheduling scheduling;
  Sharding sharding;                                          ///< of variables that are sharded
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::Auto;  ///< for synchronizers that say Auto
  /// false: variables on servers are pulled as soon as they are updated. true: when the next step starts, and a
  /// layer waits only for its own (TensorFlow, which reads variables inside the step; then `gate` is All).
  bool pull_at_step_start = false;
  /// Pulls at the start of a step are asked for in an order that each worker draws for each step (TensorFlow); false:
  /// in one order, or by priority.
  bool random_pull_order = false;
  /// Stale synchronous parallel by worker clock: steps that the fastest worker may be ahead of the slowest, where no
  /// gradient waits for others (`sync` false); none: no bound.
  std::optional<int> slack;
  /// Backup workers (Chen et al., 2016): a server applies its update as soon as the gradients of all but so many
  /// workers are there, and drops those of that step that come later. Every variable is then on servers that update it,
  /// and nothing is summed on hosts.
  int backups = 0;
  /// How the gradients of one host are summed where local_aggregation asks for it. true: its GPUs
  /// reduce-scatter and each copies its piece to the host (BytePS); false: the host's CPU sums (AutoDist).
  bool aggregate_on_gpu = false;
  /// One communication stream per device, in launch order (NCCL); false: collectives run as they become ready.
  bool serial_collectives = true;
  /// Software cost that the framework adds to every collective or push (negotiation, RPC).
  Seconds per_operation_cost{0};
  /// How the bytes of a parameter-server message travel: concurrent streams per worker-server pair.
  int streams_per_server = 1;
  /// HTTP/2 on such a stream: a message sends so many bytes (`win_bytes`), then it waits for its turn behind the
  /// others, and sends so many more (`win_next`) at each turn. None: the whole message, or all that is left of it. 0: a
  /// frame at each turn, as if messages shared the stream evenly.
  std::optional<Bytes> win_bytes;
  std::optional<Bytes> win_next;
  /// Whether the servers and the workers of a host are one process (TensorFlow), so that what they send to another host
  /// takes turns on one connection. false: processes of their own, each with connections of its own.
  bool shared_process = false;
  /// Of the model's parameters.
  [[nodiscard]] int replicas() const { return workers / parallel.ranks(); }
  /// Those with samples of their own: context-parallel replicas share a batch.
  [[nodiscard]] int batches() const { return replicas() / parallel.context; }
  friend bool operator==(const GraphStrategy&, const GraphStrategy&) = default;
};

}  // namespace simsync
