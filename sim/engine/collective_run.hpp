// A collective made ready for one network: hops with their ways, start-up times and waits. Private to sim/engine.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "base/units.hpp"
#include "platforms/topology.hpp"
#include "sim/engine/folding.hpp"
#include "sim/plan/collectives.hpp"
#include "sim/plan/pipeline_fill.hpp"

namespace simsync::detail {

/// One hop over simulated links. Amounts are per byte of payload.
struct RoutedHop {
  std::vector<LinkId> links;
  int path = -1;           ///< FlowNetwork path; -1: both ends share a memory
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
};

/// A schedule over the simulated nodes, shared by all collectives of the same algorithm.
struct RoutedSchedule {
  std::vector<RoutedHop> hops;
  std::vector<Pipeline> pipelines;
  std::vector<std::vector<int>> members;  ///< hops by pipeline; those of a ring in its order
  std::optional<PipelineFill> fill;       ///< of algorithms whose messages flow through

  /// Start-up of a pipeline's hops in `fluid`, in the order of `members`: what the rounds take beyond the bandwidth
  /// term of the slowest hop.
  [[nodiscard]] std::vector<Seconds> start_up(int pipeline, double payload) const;

private:
  [[nodiscard]] double message_bytes(const RoutedHop& hop, double payload) const {
    return hop.bytes * payload / hop.rounds + hop.half;
  }
  [[nodiscard]] double message_time(const RoutedHop& hop, double payload) const {
    return message_bytes(hop, payload) / hop.nominal.value();
  }
  [[nodiscard]] double ring_start_up(const std::vector<int>& ring, double payload) const;
  [[nodiscard]] Seconds through_start_up(double payload) const;
  /// Mean over the hops between nodes, or inside them.
  [[nodiscard]] MessageCost mean_message(bool inter, double payload) const;

  mutable std::map<double, Seconds> known_fill_;  ///< by payload
};

/// What routing needs to know.
struct RouteContext {
  const Plan& plan;
  const Cluster& cluster;
  const Topology& topology;
  const Folding& folding;
  std::function<int(const std::vector<LinkId>&, BytesPerSecond cap)> path_of;  ///< numbers a way in the FlowNetwork
};

/// The group is the job, or node number `node` of the plan when that is not -1.
RoutedSchedule route(const RouteContext& context, CollectivePrimitive primitive, CollectiveAlgorithm algorithm,
                     int chunks, int node);

}  // namespace simsync::detail
