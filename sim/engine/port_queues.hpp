// What waits in the ports of a network. Private to sim/engine.
#pragma once
#include <map>
#include <utility>
#include <vector>

#include "platforms/topology.hpp"
#include "sim/engine/flow_network.hpp"
#include "sim/engine/routes.hpp"

namespace simsync::detail {

/// The FlowNetwork shares each link evenly, and delivers control messages, which have no bytes, at once. This class
/// adds what that leaves out: control messages and first bytes wait for what is queued in each port on their route.
///
/// Most ports serve bytes in the order of their arrival. A flow's bytes, and those behind it on its connection, are
/// queued in its bottleneck, the port that leaves it the least share, up to `queueing_delay`. In its other ports they
/// are queued up to `passing_delay`.
///
/// Ports with fair queues serve one `turn` of every other node first, and again before every further turn of the same
/// bytes. Even sharing has all of that but one thing: the last turn takes as long as a full one. Bytes between the same
/// two nodes do not wait for each other here. Network and routes must outlive this object.
class PortQueues {
public:
  PortQueues(const FlowNetwork& network, const Routes& routes);

  /// So many more bytes wait for their turn behind flows of a path, or fewer.
  void behind(int path, double bytes) {
    if (any_) behind_[path] += bytes;
  }
  /// From now until a control message along `links`, which takes `latency` besides, has arrived, where bytes of its own
  /// connection leave for `own` before it: turns of others pass meanwhile. Those between two nodes keep their order.
  Seconds control_message(int from_node, int to_node, const std::vector<LinkId>& links, Seconds latency, Seconds own);
  /// What `bytes` along a path wait before the first leaves, beyond what sharing the ports evenly will cost them.
  [[nodiscard]] Seconds first_byte(int path, double bytes) const;

private:
  [[nodiscard]] const Link& link(int number) const { return routes_.links()[static_cast<std::size_t>(number)]; }
  /// What `bytes` that cross `links` wait for at one of them, beyond what sharing it evenly will cost them.
  [[nodiscard]] Seconds wait_at(int link, const std::vector<int>& links, double bytes) const;
  [[nodiscard]] Seconds in_order(int link, double bytes) const;
  [[nodiscard]] Seconds in_turn(int link, int own_peer, double bytes) const;
  [[nodiscard]] int peer_of(int link, const std::vector<int>& links) const;
  [[nodiscard]] int port_of(int path) const;

  const FlowNetwork& network_;
  const Routes& routes_;
  bool any_;                                             ///< port keeps a queue
  std::map<int, double> behind_;                         ///< bytes, by path
  std::map<std::pair<int, int>, Seconds> last_arrival_;  ///< of a control message, by nodes
};

}  // namespace simsync::detail
