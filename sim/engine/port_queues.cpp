#include "sim/engine/port_queues.hpp"

#include <algorithm>

namespace simsync::detail {
namespace {

bool keeps_queue(const PortService& service) {
  return service.queueing_delay.value() > 0.0 || service.passing_delay.value() > 0.0 || service.turn.count > 0;
}

}  // namespace

Seconds PortQueues::word(int from_node, int to_node, const std::vector<LinkId>& links, Seconds latency) {
  const Seconds now = network_.now();
  Seconds arrival = now + latency;
  for (const LinkId id : links) arrival += queue_at(id, links).wait;
  Seconds& last = last_arrival_[{from_node, to_node}];
  last = std::max(last, arrival);
  return last - now;
}

Seconds PortQueues::first_byte(int path, double bytes) const {
  Seconds sum;
  const std::vector<int>& links = ways_.paths()[static_cast<std::size_t>(path)].links;
  for (const int id : links) {
    const Queue queue = queue_at(id, links);
    const Seconds shared = static_cast<double>(queue.flows) * Seconds{bytes / link(id).bandwidth.value()};
    sum += std::max(Seconds{0.0}, queue.wait - shared);
  }
  return sum;
}

PortQueues::Queue PortQueues::queue_at(int id, const std::vector<int>& links) const {
  const PortService& service = link(id).service;
  if (!keeps_queue(service)) return {};
  return service.turn.count > 0 ? in_turn(id, peer_of(id, links)) : in_order(id);
}

/// The port at the other end of a way across one: it tells nodes apart, whichever of their devices send. -1: none.
int PortQueues::peer_of(int id, const std::vector<int>& links) const {
  for (const int other : links)
    if (other != id && link(other).service.turn.count > 0) return other;
  return -1;
}

PortQueues::Queue PortQueues::in_turn(int id, int own_peer) const {
  const auto turn = static_cast<double>(link(id).service.turn.count);
  Queue queue;
  std::map<int, double> left_of;  ///< bytes, by peer
  network_.visit_flows(id, [&](int path, double left) {
    ++queue.flows;
    left_of[peer_of(id, ways_.paths()[static_cast<std::size_t>(path)].links)] += left;
  });
  double first = 0.0;
  for (const auto& [peer, left] : left_of)
    if (peer != own_peer) first += std::min(std::max(0.0, left), turn);
  queue.wait = Seconds{first / link(id).bandwidth.value()};
  return queue;
}

PortQueues::Queue PortQueues::in_order(int id) const {
  const Link& port = link(id);
  Queue queue;
  double standing = 0.0;
  double passing = 0.0;
  std::vector<int> paths;
  network_.visit_flows(id, [&](int path, double left) {
    if (port_of(path) != id) {
      passing += left;
      return;
    }
    ++queue.flows;
    standing += left;
    paths.push_back(path);
  });
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  for (const int path : paths)
    if (const auto more = behind_.find(path); more != behind_.end()) standing += more->second;
  const double rate = port.bandwidth.value();
  queue.wait = std::min(port.service.queueing_delay, Seconds{std::max(0.0, standing) / rate}) +
               std::min(port.service.passing_delay, Seconds{passing / rate});
  return queue;
}

/// The first of its links that leaves a flow the least share; -1: its cap does, or a link that keeps no queue.
int PortQueues::port_of(int path) const {
  const FlowPath& way = ways_.paths()[static_cast<std::size_t>(path)];
  int port = -1;
  double least = way.cap.value();
  for (const int id : way.links) {
    const double share = link(id).bandwidth.value() / static_cast<double>(network_.flows_across(id));
    if (share >= least) continue;
    least = share;
    port = id;
  }
  return port >= 0 && keeps_queue(link(port).service) ? port : -1;
}

}  // namespace simsync::detail
