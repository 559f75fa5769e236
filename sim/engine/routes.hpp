// The routes that transfers and hops of collectives take through the FlowNetwork. Private to sim/engine.
#pragma once
#include <compare>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "platforms/topology.hpp"
#include "sim/engine/engine.hpp"
#include "sim/engine/flow_network.hpp"
#include "sim/engine/groups.hpp"

namespace simsync::detail {

/// A process's connection to one on another node, in one direction.
struct ConnectionId {
  int from_node = -1;
  int to_node = -1;
  int number = 0;  ///< Transfer::connection
  friend auto operator<=>(const ConnectionId&, const ConnectionId&) = default;
};

/// What one instance of a transfer has to cross.
struct Route {
  int path = -1;  ///< of the FlowNetwork; -1: nothing to cross
  Seconds delay;  ///< latency and fixed costs, before the bytes leave
  double extra_bytes = 0.0;
  int connection = -1;  ///< number of the one that serves its transfers in turn; -1: none
};

/// Finds routes and numbers each once. Plan, groups and topology must outlive it.
class Routes {
public:
  /// Begins a new problem in `network`, with the links of `topology`.
  Routes(const Plan& plan, const Groups& groups, const Topology& topology, FlowNetwork& network);

  const Route& route_of(const Instance& transfer);
  /// Where a transfer of this device begins or ends.
  [[nodiscard]] static Place place_of(const End& end, const Place& device);
  /// Number of the path across these links, each flow at no more than `cap`.
  int path_along(const std::vector<int>& links, BytesPerSecond cap);

  /// By number.
  [[nodiscard]] const ConnectionId& connection(int number) const {
    return connections_[static_cast<std::size_t>(number)];
  }
  /// -1: no transfer has taken it.
  [[nodiscard]] int number_of(const ConnectionId& connection) const;

  /// Those of the topology, then those that cap the connections between two nodes.
  [[nodiscard]] const std::vector<Link>& links() const { return links_; }
  /// By number.
  [[nodiscard]] const std::vector<FlowPath>& paths() const { return flow_paths_; }

private:
  /// What tells routes of transfers apart.
  struct RouteKey {
    Place from;
    Place to;
    int own_node = 0;  ///< of the group
    int streams = 0;
    int connection = 0;    ///< Transfer::connection
    int stands_for = 1;    ///< nodes
    bool of_rank = false;  ///< of each rank, which may stand for others
    friend auto operator<=>(const RouteKey&, const RouteKey&) = default;
  };
  /// What transfers with one key have in common.
  struct SharedRoute {
    int path = -1;
    int connection = -1;
    Seconds latency;
    Seconds message_cost;
    double half_size = 0.0;
  };
  [[nodiscard]] Route find(const Op& op, int group);
  /// `devices`: those that the transfer's stands for, its own first.
  [[nodiscard]] SharedRoute find_shared(const RouteKey& key, std::span<const Place> devices);
  int connection_number(const ConnectionId& connection);
  int connection_link(int connection, BytesPerSecond capacity);

  const Plan& plan_;
  const Groups& groups_;
  const Topology& topology_;
  FlowNetwork& network_;
  std::vector<Link> links_;
  std::vector<std::unique_ptr<Route>> routes_;                ///< by number of the instance
  std::map<std::pair<std::vector<int>, double>, int> known_;  ///< by links and cap
  std::vector<FlowPath> flow_paths_;
  std::map<RouteKey, SharedRoute> shared_;
  std::vector<ConnectionId> connections_;
  std::map<ConnectionId, int> connection_numbers_;
  std::vector<int> connection_links_;  ///< that cap connections, by number; -1: nothing does
};

}  // namespace simsync::detail
