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
#include <string>
#include <vector>

#include "sim/plan/groupings.hpp"
#include "sim/plan/op.hpp"

namespace simsync {

class Random;

/// A resource that serves some instances at a time: a device's compute stream, its communication stream, a
/// host's threads, the send queue of a scheduled worker.
struct Queue {
  std::string name;
  GroupingId grouping = kEachRank;  ///< one queue per group; of those of nodes, work of a server takes its node's
  int slots = 1;        ///< instances served at a time, HostWork by its threads; 0: as many as `credit` allows
  double credit = 0.0;  ///< bytes in flight below which another instance may start; 0: no such limit
  bool strict = false;  ///< an instance must fit into what is left of the credit; one that does not lets others pass
  Ordering ordering = Ordering::Fifo;
};

/// How far ranks wait for each other from step to step.
struct ProgressPolicy {
  /// The op of every rank that ends its step, where ranks need not wait for each other in every step (asynchronous
  /// training, bounded staleness); -1: all are in lock step.
  OpId step_end = -1;
  /// The job's op that ends a step for all ranks, where it takes the gradients of all but `backups` of them (backup
  /// workers): whoever ends its own step after several of these goes on with the newest, and skips those between. -1:
  /// no step does without a rank.
  OpId global_step = -1;
  int backups = 0;
};

/// What ranks draw at random.
struct Draws {
  double step_variation = 0.0;  ///< coefficient of variation of the compute of a rank's steps
  std::uint64_t seed = 1;
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
  int server_connection = 0;        ///< Transfer::connection on which servers send; 0: that of workers, too
  ProgressPolicy progress;
  /// Of the compute ops of a step: what ranks in lock step wait for the slowest of them
  /// (DeviceClass::compute_variation).
  Seconds waiting;
  Draws draws;
  std::int32_t tensors = 0;  ///< pieces of variables that servers keep, see Transfer::tensor
  std::vector<Queue> queues;
  std::vector<std::string> notes;  ///< what was decided otherwise than the strategy asks, for people
  std::vector<Op> ops;             ///< every `after` names an op; those with lag 0 form no cycle

  /// Takes ranks that are sorted node by node, and sets the groupings that every plan has.
  void set_ranks(std::vector<Place> places);
  /// Whether every rank's step waits for all others' of the one before; false: see ProgressPolicy::step_end.
  [[nodiscard]] bool in_lock_step() const { return progress.step_end < 0; }
  /// Whether steps are common to all ranks: these are in lock step, or do without the latest.
  [[nodiscard]] bool has_common_steps() const { return in_lock_step() || progress.global_step >= 0; }
  /// Whether no step is like another, because ranks are asynchronous or draw how long each takes them.
  [[nodiscard]] bool steps_vary() const { return !in_lock_step() || draws.step_variation > 0.0; }
  [[nodiscard]] int rank_count() const { return static_cast<int>(ranks.size()); }
  [[nodiscard]] const Grouping& grouping(GroupingId id) const { return groupings[static_cast<std::size_t>(id)]; }
};

/// How long a compute op takes a rank in an iteration, on a device of speed 1. A rank draws how far each of its steps
/// is from the mean. An asynchronous rank also draws one of the profiled steps, each equally often in a block of steps.
/// Without either it takes Compute::duration. All back ends draw the same. Ranks that nothing brings together do not
/// begin all at once: in the first iteration each computes longer, by a random share of the time that all ranks would
/// take one after another.
Seconds compute_time(const Plan& plan, const Op& op, int rank, int iteration);

/// Steps in which a rank draws each profiled one equally often; 0: none are drawn.
int longest_block(const Plan& plan);

/// What a group draws for. Seeded results rest on the numbers: a new purpose is appended.
enum class DrawPurpose : std::uint8_t {
  ComputeTime,    ///< how long a rank's step computes
  ProfiledSteps,  ///< the order in which a rank goes through the profiled steps; iteration 0 stands for all
  ReleaseOrder,   ///< the order in which what waited for an op becomes ready (draw_order)
};
/// What a group draws for one purpose in an iteration: a stream of its own, by a hash of Draws::seed and these three.
Random draws_of(const Plan& plan, DrawPurpose purpose, int group, int iteration);

/// By op: whether an instance of a rank comes after the end of that rank's step (ProgressPolicy::step_end) in the same
/// iteration.
std::vector<bool> after_step_end(const Plan& plan);

/// What people call an op: `backward fc6`, `push fc6/weight[1]`, `all-reduce bucket 3`. An op of several parts is
/// named by its first and last one.
std::string title_of(const Plan& plan, const Op& op);
std::string title_of(const Plan& plan, const ComputePart& part);

/// @throws std::logic_error when an op names an absent op or queue or when lag-0 dependences form a cycle.
void check(const Plan& plan);

}  // namespace simsync
