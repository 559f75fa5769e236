// What a replay, or a run on real processes, tells: step times and, when recorded, what happened when.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "platforms/topology.hpp"
#include "sim/plan/plan.hpp"
#include "sim/problem/replay_options.hpp"

namespace simsync {

/// What users read: they count iterations from 1, the program's indices from 0.
constexpr int number_of_iteration(int index) {
  return index + 1;
}

/// One instance of an op in one iteration.
struct Span {
  OpId op = 0;
  int group = 0;      ///< among the groups that were simulated
  int iteration = 0;  ///< index into Prediction::steps
  Seconds ready;      ///< predecessors complete
  Seconds start;      ///< resource free
  Seconds end;
  /// Index of the span that ended at `start` and so let this one begin: its last predecessor or, when this one had to
  /// wait for a resource (`start` is after `ready`), the one that left the resource. -1: none.
  std::int32_t cause = -1;
};

/// Bytes on their way: a transfer, or a hop of a collective (one message of it in `steps`).
struct FlowSpan {
  OpId op = 0;  ///< with `group` and `iteration`: whose bytes
  int group = 0;
  int iteration = 0;
  int hop = -1;       ///< of a collective; -1: a transfer
  int pipeline = -1;  ///< of the collective's schedule, to which the hop belongs
  int path = 0;       ///< index into Traffic::paths
  Seconds ready;      ///< came to its connection: latency and fixed costs are over
  Seconds start;      ///< its turn on the connection
  Seconds end;
  double bytes = 0.0;          ///< as the network sees them
  double message_bytes = 0.0;  ///< those of them that stand for the fixed cost of messages (LinkClass::half_size)
  /// Index of the span that ended at `start` and so gave up its turn on the connection. -1: it did not wait for one.
  std::int32_t cause = -1;
};

/// A way that flows take.
struct FlowPath {
  std::vector<int> links;  ///< index into Traffic::links, in order
  BytesPerSecond cap;      ///< most that flows of this way reach together, whatever the links; infinite: none
};

/// What a link carried in a step.
struct LinkRate {
  int link = 0;   ///< index into Traffic::links
  Seconds begin;  ///< of the step
  Seconds end;
  Seconds width;              ///< of an interval
  std::vector<double> bytes;  ///< in each interval since `begin`
};

/// Everything that crossed links while it was recorded.
struct Traffic {
  std::vector<Link> links;
  std::vector<FlowPath> paths;
  std::vector<FlowSpan> flows;  ///< in order of their start
  std::vector<LinkRate> rates;  ///< of all flows, also of those that were not kept; see ReplayOptions::record_rates
};

/// Traffic of one link over the recorded time.
struct LinkUse {
  std::string name;
  double bytes = 0.0;
  double utilization = 0.0;  ///< bytes over bandwidth x recorded time
};

struct Prediction {
  Seconds step;                         ///< steady state
  std::vector<Seconds> steps;           ///< of each simulated iteration, the first from a cold start
  bool steady = false;                  ///< see replay; false: `step` is the pace of steps that keep changing
  Seconds compute;                      ///< slowest device: its compute ops without any waiting
  Fidelity fidelity = Fidelity::Fluid;  ///< the one that was used
  int simulated_ranks = 0;
  /// Of asynchronous ranks (ProgressPolicy::step_end), else empty: each one's mean step, and the share of steps by
  /// how many steps of others ended meanwhile (empty where steps do not wait for late ones).
  std::vector<Seconds> rank_steps;
  std::vector<double> staleness;
  int warm_up = 0;           ///< first of `steps` that do not count, where steps are common and vary
  double step_error = 0.0;   ///< of `step`, where steps vary (Plan::steps_vary): see relative_error
  int steps_per_worker = 0;  ///< so many were simulated on average of ranks, where steps vary
  double dropped = 0.0;      ///< share of the gradients' bytes that came too late (ProgressPolicy::backups)
  std::int64_t flows = 0;
  std::int64_t collectives_alone = 0;  ///< that were known to take so long (CollectiveAlone), without flows
  std::int64_t work = 0;  ///< what it cost to simulate (FlowNetwork::work): a count, the same on every machine
  bool finished = true;   ///< false: ReplayOptions::most_work was not enough; `step` and `steps` say nothing
  bool recorded = false;  ///< what follows is there
  // Only when recorded:
  std::vector<Span> spans;          ///< in order of completion
  std::vector<Place> ranks;         ///< simulated ones, in order of their number in the plan
  std::vector<Grouping> groupings;  ///< the plan's, of the simulated ranks (see among)
  std::map<int, int> stands_for;    ///< simulated node -> how many nodes it represents, itself included
  std::vector<Seconds> iteration_end;
  Traffic traffic;
  std::vector<LinkUse> links;  ///< those that carried anything, busiest first
};

}  // namespace simsync
