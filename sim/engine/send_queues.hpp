// What processes have handed to their connections and have not sent. Private to sim/engine.
#pragma once
#include <vector>

#include "sim/engine/flow_network.hpp"
#include "sim/engine/routes.hpp"

namespace simsync::detail {

/// A control message follows the bytes that its process has handed to the same connection before
/// (CpuClass::send_ahead). Cluster, network and routes must outlive it.
class SendQueues {
public:
  SendQueues(const Cluster& cluster, const FlowNetwork& network, const Routes& routes);

  /// Bytes are handed to the connection of that number, to go along a path.
  void hand_over(int connection, int path, double bytes);
  /// Bytes that were handed over leave.
  void start(int connection, double bytes);
  /// Bytes that left have arrived.
  void end(int connection, double bytes);
  /// The send-buffer delay of a control message that is handed over now: how long the bytes before it that have not
  /// left will take, at the rate that the connection has now.
  [[nodiscard]] Seconds control_message(const ConnectionId& connection) const;

private:
  struct Queue {
    std::vector<int> paths;  ///< those that its transfers take, from and to several devices of a host
    double unsent = 0.0;     ///< bytes that have not arrived
    double under_way = 0.0;  ///< of them
  };
  [[nodiscard]] Queue& queue_at(int connection);
  [[nodiscard]] Seconds time_of(const Queue& queue) const;
  [[nodiscard]] const FlowPath& path_of(int path) const { return routes_.paths()[static_cast<std::size_t>(path)]; }

  const Cluster& cluster_;
  const FlowNetwork& network_;
  const Routes& routes_;
  bool delay_;                 ///< whether any host has a CpuClass::send_ahead; without, nothing is counted
  std::vector<Queue> queues_;  ///< by number of the connection
};

}  // namespace simsync::detail
