// The routes that transfers and hops of collectives take through the FlowNetwork. Private to sim/engine.
#pragma once
#include <compare>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "platforms/topology.hpp"
#include "sim/engine/engine.hpp"
#include "sim/engine/flow_network.hpp"
#include "sim/engine/groups.hpp"

namespace simsync::detail {

/// A process's connection to one on another node, in one direction.
struct ConnectionId {
  int from_node = -1;  ///< -1: none
  int to_node = -1;
  int number = 0;  ///< Op::connection
  friend auto operator<=>(const ConnectionId&, const ConnectionId&) = default;
};

/// What one instance of a transfer has to cross.
struct Route {
  int path = -1;  ///< of the FlowNetwork; -1: nothing to cross
  Seconds delay;  ///< latency and fixed costs, before the bytes leave
  double extra_bytes = 0.0;
  ConnectionId connection;  ///< serves its transfers in turn
};

/// Finds routes and numbers each once. Plan, groups and topology must outlive it.
class Routes {
public:
  /// Begins a new problem in `network`, with the links of `topology`.
  Routes(const Plan& plan, const Groups& groups, const Topology& topology, FlowNetwork& network);

  const Route& route_of(const Instance& transfer);
  /// Number of the path across these links, each flow at no more than `cap`.
  int path_along(const std::vector<int>& links, BytesPerSecond cap);

  /// Those of the topology, then those that cap the connections between two nodes.
  [[nodiscard]] const std::vector<Link>& links() const { return links_; }
  /// By number.
  [[nodiscard]] const std::vector<FlowPath>& paths() const { return flow_paths_; }

private:
  [[nodiscard]] Route find(const Op& op, int group);
  [[nodiscard]] Place place_of(const End& end, const Op& op, int group) const;
  int connection_link(const ConnectionId& connection, BytesPerSecond capacity);

  const Plan& plan_;
  const Groups& groups_;
  const Topology& topology_;
  FlowNetwork& network_;
  std::vector<Link> links_;
  std::vector<std::unique_ptr<Route>> routes_;                ///< by number of the instance
  std::map<std::pair<std::vector<int>, double>, int> known_;  ///< by links and cap
  std::vector<FlowPath> flow_paths_;
  std::map<ConnectionId, int> connection_links_;
};

}  // namespace simsync::detail
