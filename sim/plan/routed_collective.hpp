// A collective made ready for one network: hops with their routes, start-up times and waits. Private to sim.
#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "platforms/topology.hpp"
#include "sim/plan/collectives.hpp"
#include "sim/plan/compile.hpp"
#include "sim/plan/pipeline_fill.hpp"
#include "sim/plan/plan.hpp"

namespace simsync::detail {

/// The ranks of a group and the ways between them.
struct GroupMembers {
  GroupMembers(const Plan& plan, std::span<const int> ranks);
  /// From one of them to another, by their places in the group. `loop`: HopEnds::loop.
  [[nodiscard]] HopPath path(const Topology& topology, const CollectiveCosts& costs, CollectiveAlgorithm algorithm,
                             const Hop& hop, bool loop = false) const;

  std::span<const int> ranks;  ///< of the plan, ascending
  GroupShape shape;
  std::vector<Place> places;           ///< by place in the group
  std::vector<std::vector<int>> gpus;  ///< by node of the group
};

/// One hop over simulated links. Amounts are per byte of payload.
struct RoutedHop {
  int from = 0;  ///< place in the group
  int to = 0;
  std::vector<LinkId> links;
  int path = -1;           ///< number of its way, RouteContext::path_of; -1: both ends share a memory
  Seconds alpha;           ///< latency and fixed costs of one message
  double half = 0.0;       ///< bytes by which every message is dearer (LinkClass::half_size)
  BytesPerSecond cap;      ///< all streams together
  BytesPerSecond nominal;  ///< rate without contention
  BytesPerSecond narrow;   ///< of the narrowest link on the way, whatever the cap
  double bytes = 0.0;      ///< over all rounds
  int rounds = 1;
  int pipeline = 0;
  int lag = 0;
  std::vector<int> needs;
  std::vector<int> after;
  std::vector<int> unblocks;        ///< hops that need this one
  std::vector<int> unblocks_after;  ///< hops whose stage waits for this one
  bool inter = false;
  bool overlap = false;  ///< `alpha` passes while the message's bytes travel

  /// Bytes of one message as the network sees them.
  [[nodiscard]] double message(double payload) const { return bytes * payload / rounds + half; }
  [[nodiscard]] double message_time(double payload) const { return message(payload) / nominal.value(); }
  /// What a message takes besides its bytes.
  [[nodiscard]] Seconds fixed(double payload) const {
    return overlap ? Seconds{std::max(0.0, alpha.value() - message_time(payload))} : alpha;
  }
};

/// A schedule over the simulated nodes, shared by all collectives of the same algorithm.
struct RoutedSchedule {
  std::vector<RoutedHop> hops;
  std::vector<Pipeline> pipelines;
  std::vector<std::vector<int>> members;  ///< hops by pipeline; those of a ring in its order
  const PipelineFill* fill = nullptr;     ///< of algorithms whose messages flow through

  /// Start-up of a pipeline's hops in `fluid`, in the order of `members`: what the rounds take beyond the bandwidth
  /// term of the slowest hop.
  [[nodiscard]] std::vector<Seconds> start_up(int pipeline, double payload) const;

private:
  [[nodiscard]] double chain_start_up(const std::vector<int>& chain, double payload) const;
  [[nodiscard]] double ring_start_up(const std::vector<int>& ring, double payload) const;
  [[nodiscard]] Seconds through_start_up(double payload) const;
  /// Mean over the hops between nodes, or inside them.
  [[nodiscard]] MessageCost mean_message(bool inter, double payload) const;
};

/// What routing needs to know.
struct RouteContext {
  const Plan& plan;
  const Cluster& cluster;
  const Topology& topology;
  const std::vector<int>& nodes;  ///< to route for, as groups of kEachNode
  bool folded = false;            ///< each of them represents others: what leaves it comes back into it
  std::function<int(const std::vector<LinkId>&, BytesPerSecond cap)> path_of;  ///< numbers a way
  PipelineFills& fills;                                                        ///< outlive the schedules
};

/// What tells one schedule from another.
struct ScheduleKey {
  CollectiveKind kind;
  std::string protocol;
  int chunks = 1;
  GroupingId grouping = kWholeJob;
  int group = 0;
  friend auto operator<=>(const ScheduleKey&, const ScheduleKey&) = default;
};

RoutedSchedule route(const RouteContext& context, const ScheduleKey& key);

}  // namespace simsync::detail
