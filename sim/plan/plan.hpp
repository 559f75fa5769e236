// Fully decided work of one training iteration, for any number of ranks.
//
// A Plan is written once for all ranks: an Op names a division of the ranks into groups (Grouping) and stands for one
// instance per group. An Op may depend on another; the rule for which instances are meant is one and the same
// everywhere: instance b of B waits for every instance a of A whose group shares a rank with b's group. So "each rank's
// forward waits for the job's all-reduce" and "the all-reduce waits for each rank's backward" need no further
// description, and a back end expands as many groups as it needs: one rank for the hardware runner, a representative of
// each class for `folded`, all of them for `fluid` and `steps`.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "base/units.hpp"
#include "platforms/cluster.hpp"
#include "sim/plan/collectives.hpp"
#include "sim/plan/groupings.hpp"

namespace simsync {

class Random;

using OpId = std::int32_t;
using QueueId = std::int32_t;

enum class Phase : std::uint8_t {
  Forward,
  Backward,
  Copy,
  Aggregate,
  Push,
  RemoteCall,
  Dispatch,
  Serve,
  Update,
  Pull,
  Synchronize,
  Start
};
const char* name_of(Phase phase);

/// One end of a transfer, or the place of a host's work.
struct End {
  enum class Kind : std::uint8_t {
    Device,  ///< the GPU of the group's first rank
    Host,    ///< the host of that rank's node
    Fixed,   ///< `place`, the same for every group: a server
  };
  Kind kind = Kind::Host;
  Place place;
};

/// `op` must be complete before this one starts; `lag` 1 means the op of the iteration before, 2 of the one before
/// that.
struct After {
  OpId op = 0;
  int lag = 0;
};

/// Why an op exists, for the timeline and the explanation; never read by a back end.
struct Reason {
  Phase phase = Phase::Start;
  std::int32_t layer = -1;  ///< first layer concerned, -1: none
  std::string label;        ///< `fc6/weight`, `bucket 3`, `conv1 ... conv4`
};

/// A stretch of a compute op that was written as an op of its own before neighbors were merged.
struct ComputePart {
  std::int32_t layer = -1;
  Phase phase = Phase::Forward;
  Seconds duration;
};

/// As many bytes as there are.
inline constexpr double kWhole = std::numeric_limits<double>::infinity();

/// The rank's device is busy.
struct Compute {
  Seconds duration;                ///< on a device of speed 1
  std::vector<ComputePart> parts;  ///< may be empty
  /// How long it took in each step that was profiled, `duration` being the mean; a rank at its own pace draws one step
  /// for all ops.
  std::vector<Seconds> samples;
};

/// What a host, or the GPU of a server, is busy with.
enum class HostAction : std::uint8_t {
  Wait,        ///< nothing: time passes
  Sum,         ///< a gradient is added to others
  Apply,       ///< an update of a variable
  Serve,       ///< a read of a variable is answered: before all that waits for a thread
  Dispatch,    ///< a thread is woken
  RemoteCall,  ///< a message is handed to the network, or taken from it
};

/// As which phase people read of it.
Phase phase_of(HostAction action);

struct HostWork {
  HostAction action = HostAction::Wait;
  End at;
  Seconds duration;
  Seconds late;              ///< instead of `duration`, where what waits for it has begun without it
  double threads = 1;        ///< slots of its queue that it occupies
  double bytes = 0.0;        ///< of the gradient that is summed or applied
  std::int32_t tensor = -1;  ///< see Transfer::tensor
  /// Its instances take turns on their queue, which serves other ops meanwhile: additions to one accumulator.
  bool one_at_a_time = false;
};

/// Bytes move from `from` to `to`.
struct Transfer {
  End from;
  End to;
  double bytes = 0.0;  ///< payload
  int messages = 1;    ///< that the bytes travel in
  Seconds setup;       ///< before bytes move
  Seconds packing;     ///< the part of `setup` in which the device encodes gradients; it comes first
  /// The piece of a variable that a server keeps: transfers and host work of one tensor share its buffers; -1: none.
  std::int32_t tensor = -1;
  /// The receiver asks for it once its own queue lets it.
  bool receiver_initiated = false;
  int connection = 0;  ///< which one, where several processes of a node have one each
  /// Between hosts: parallel streams of the connection between the two nodes, which all transfers of that direction and
  /// `connection` share; 0: a stream of its own.
  int streams = 0;
  /// On such a stream: bytes until the next one has its turn, and at each later turn of its own.
  double first_turn = kWhole;
  double later_turn = kWhole;

  /// A server's host is asked for it, whose threads have to be woken.
  [[nodiscard]] bool asks_host() const { return receiver_initiated && from.place.gpu < 0; }
  /// It carries a gradient to a server.
  [[nodiscard]] bool pushes() const { return to.kind == End::Kind::Fixed; }
};

/// All ranks of the group take part.
struct Collective {
  CollectivePrimitive primitive = CollectivePrimitive::AllReduce;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::Ring;
  std::string protocol;  ///< name in CollectiveCosts::protocols; empty: the cluster tells none apart
  double bytes = 0.0;    ///< payload
  Seconds setup;         ///< before bytes move
  Seconds packing;       ///< the part of `setup` in which the device copies or encodes gradients; it comes first
  /// Measured over modelled time of such a one (CollectiveCosts::measured): the simulator counts its rounds, costs and
  /// bytes, so many times. `setup` has it already.
  double ratio = 1.0;
};

/// In the order of Op::body.
enum class OpKind : std::uint8_t { Compute, HostWork, Transfer, Collective };

struct Op {
  GroupingId grouping = kEachRank;
  QueueId queue = -1;  ///< serial resource it occupies while it runs; -1: none
  int priority = 0;    ///< smaller first; only a Priority queue looks at it
  std::vector<After> after;
  /// So many of the instances that it waits for may be missing (Plan::backups). One that begins when the others are
  /// there does not count: it takes HostWork::late.
  int spare = 0;
  /// What waits for it, of its own iteration, becomes ready in an order that every instance draws (see draw_order).
  bool random_order = false;
  bool timed = false;  ///< a probe is about how long it takes
  std::variant<Compute, HostWork, Transfer, Collective> body;
  Reason reason;

  [[nodiscard]] OpKind kind() const { return static_cast<OpKind>(body.index()); }
  [[nodiscard]] Compute& compute() { return std::get<Compute>(body); }
  [[nodiscard]] const Compute& compute() const { return std::get<Compute>(body); }
  [[nodiscard]] HostWork& host() { return std::get<HostWork>(body); }
  [[nodiscard]] const HostWork& host() const { return std::get<HostWork>(body); }
  [[nodiscard]] Transfer& transfer() { return std::get<Transfer>(body); }
  [[nodiscard]] const Transfer& transfer() const { return std::get<Transfer>(body); }
  [[nodiscard]] Collective& collective() { return std::get<Collective>(body); }
  [[nodiscard]] const Collective& collective() const { return std::get<Collective>(body); }
  /// Of transfers, collectives and host work; else 0.
  [[nodiscard]] double bytes() const;
  /// Slots of its queue that it occupies.
  [[nodiscard]] double threads() const { return kind() == OpKind::HostWork ? host().threads : 1.0; }
  /// Of transfers and host work; else -1.
  [[nodiscard]] std::int32_t tensor() const;
};

/// A resource that serves some instances at a time: a device's compute stream, its communication stream, a
/// host's threads, the send queue of a scheduled worker.
struct Queue {
  std::string name;
  GroupingId grouping = kEachRank;  ///< one queue per group; work at a fixed place (HostWork::at) occupies that place's
  int slots = 1;        ///< instances served at a time, HostWork by its threads; 0: as many as `credit` allows
  double credit = 0.0;  ///< bytes in flight below which another instance may start; 0: no such limit
  bool strict = false;  ///< an instance must fit into what is left of the credit; one that does not lets others pass
  Ordering ordering = Ordering::Fifo;
};

struct Plan {
  std::string model;
  std::string strategy;
  std::vector<std::string> layers;  ///< names, for Reason::layer and ComputePart::layer; may be empty
  std::vector<Place> ranks;         ///< rank -> its GPU, node by node
  std::vector<int> nodes;           ///< nodes with ranks, ascending: group of kEachNode -> node
  std::vector<int> node_begin;      ///< group of kEachNode -> first rank; one more entry than `nodes`
  std::vector<Grouping> groupings;  ///< kEachRank, kEachNode, kWholeJob, and what the strategy adds
  std::vector<Place> servers;       ///< fixed places that hold parameters, ascending, without repetition
  /// The op of every rank that ends its step, where ranks need not wait for each other in every step (asynchronous
  /// training, bounded staleness); -1: all are in lock step.
  OpId step_end = -1;
  /// The job's op that ends a step for all ranks, where the latest `backups` are left behind: whoever ends its own step
  /// after several of these goes on with the newest, and leaves out those between. -1: no step does without a rank.
  OpId global_step = -1;
  int backups = 0;
  /// Of the compute ops of a step: what ranks in lock step wait for the slowest of them
  /// (DeviceClass::compute_variation).
  Seconds waiting;
  double step_variation = 0.0;  ///< of the compute of ranks' steps: its coefficient of variation
  std::uint64_t seed = 1;       ///< of what ranks draw
  std::int32_t tensors = 0;     ///< pieces of variables that servers keep, see Transfer::tensor
  std::vector<Queue> queues;
  std::vector<std::string> notes;  ///< what was decided otherwise than the strategy asks, for people
  std::vector<Op> ops;             ///< every `after` names an op; those with lag 0 form no cycle

  /// Takes ranks that are sorted node by node, and sets the groupings that every plan has.
  void set_ranks(std::vector<Place> places);
  /// Whether every rank's step waits for all others' of the one before; false: see step_end.
  [[nodiscard]] bool in_lock_step() const { return step_end < 0; }
  /// Whether steps are common to all ranks: these are in lock step, or only the latest are left behind.
  [[nodiscard]] bool has_common_steps() const { return in_lock_step() || global_step >= 0; }
  /// Whether no step is like another, because ranks are at their own pace or draw how long each takes them.
  [[nodiscard]] bool steps_vary() const { return !in_lock_step() || step_variation > 0.0; }
  [[nodiscard]] int rank_count() const { return static_cast<int>(ranks.size()); }
  [[nodiscard]] const Grouping& grouping(GroupingId id) const { return groupings[static_cast<std::size_t>(id)]; }
};

/// How long a compute op takes a rank in an iteration, on a device of speed 1. A rank draws how far each of its steps
/// is from the mean, and one at its own pace a profiled step, each equally often in a block of steps: the same on every
/// back end. Where neither is known it is
/// `duration`. Ranks that nothing brings together do not begin all at once: in the first iteration their compute is
/// longer by a random part of what all ranks take one after another.
Seconds compute_time(const Plan& plan, const Op& op, int rank, int iteration);

/// Steps in which a rank draws each profiled one equally often; 0: none are drawn.
int longest_block(const Plan& plan);

/// What one of them draws in an iteration: for `purpose` 0 how long it computes, 1 orders; any other is far from these.
/// A group's orders are drawn as the compute of the next but one.
Random draws_of(const Plan& plan, std::uint64_t purpose, int group, int iteration);

/// By op: whether an instance of a rank comes after the end of that rank's step (Plan::step_end) in the same iteration.
std::vector<bool> after_step_end(const Plan& plan);

/// What people call an op: `backward fc6`, `push fc6/weight[1]`, `all-reduce bucket 3`. An op of several parts is
/// named by its first and last one.
std::string title_of(const Plan& plan, const Op& op);
std::string title_of(const Plan& plan, const ComputePart& part);

/// @throws std::logic_error when an op names an absent op or queue or when lag-0 dependences form a cycle.
void check(const Plan& plan);

}  // namespace simsync
