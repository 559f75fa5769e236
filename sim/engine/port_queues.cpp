#include "sim/engine/port_queues.hpp"

#include <algorithm>
#include <cmath>

namespace simsync::detail {
namespace {

bool keeps_queue(const PortService& service) {
  return service.queueing_delay.value() > 0.0 || service.passing_delay.value() > 0.0 || service.turn.count > 0;
}

}  // namespace

PortQueues::PortQueues(const FlowNetwork& network, const Routes& routes)
    : network_(network),
      routes_(routes),
      any_(std::any_of(routes.links().begin(), routes.links().end(),
                       [](const Link& link) { return keeps_queue(link.service); })) {}

Seconds PortQueues::control_message(int from_node, int to_node, const std::vector<LinkId>& links, Seconds latency,
                                    Seconds own) {
  // Messages that wait for nothing keep their order by themselves.
  if (!any_ && own.value() <= 0.0 && last_arrival_.empty()) return latency;
  const Seconds now = network_.now();
  Seconds queued;
  for (const LinkId id : links) queued += wait_at(id, links, 0.0);
  const Seconds arrival = now + latency + std::max(own, queued);
  Seconds& last = last_arrival_[{from_node, to_node}];
  last = std::max(last, arrival);
  return last - now;
}

Seconds PortQueues::first_byte(int path, double bytes) const {
  if (!any_) return {};
  Seconds sum;
  const std::vector<int>& links = routes_.paths()[static_cast<std::size_t>(path)].links;
  for (const int id : links) sum += wait_at(id, links, bytes);
  return sum;
}

Seconds PortQueues::wait_at(int id, const std::vector<int>& links, double bytes) const {
  const PortService& service = link(id).service;
  if (!keeps_queue(service)) return {};
  return service.turn.count > 0 ? in_turn(id, peer_of(id, links), bytes) : in_order(id, bytes);
}

/// The port at the other end of a route across one: it tells nodes apart, whichever of their devices send. -1: none.
int PortQueues::peer_of(int id, const std::vector<int>& links) const {
  for (const int other : links)
    if (other != id && link(other).service.turn.count > 0) return other;
  return -1;
}

Seconds PortQueues::in_turn(int id, int own_peer, double bytes) const {
  struct Others {
    int flows = 0;
    double left = 0.0;  ///< bytes
  };
  std::map<int, Others> by_peer;
  network_.visit_flows(id, [&](int path, double left) {
    Others& others = by_peer[peer_of(id, routes_.paths()[static_cast<std::size_t>(path)].links)];
    ++others.flows;
    others.left += std::max(0.0, left);
  });
  const auto turn = static_cast<double>(link(id).service.turn.count);
  const double last = bytes > 0.0 ? bytes - turn * (std::ceil(bytes / turn) - 1.0) : 0.0;
  double sum = 0.0;
  for (const auto& [peer, others] : by_peer)
    if (peer != own_peer) sum += std::max(0.0, std::min(others.left, turn) - others.flows * last);
  return Seconds{sum / link(id).bandwidth.value()};
}

Seconds PortQueues::in_order(int id, double bytes) const {
  const Link& port = link(id);
  int flows = 0;
  double standing = 0.0;
  double passing = 0.0;
  std::vector<int> paths;
  network_.visit_flows(id, [&](int path, double left) {
    if (port_of(path) != id) {
      passing += left;
      return;
    }
    ++flows;
    standing += left;
    paths.push_back(path);
  });
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  for (const int path : paths)
    if (const auto more = behind_.find(path); more != behind_.end()) standing += more->second;
  const double rate = port.bandwidth.value();
  const Seconds wait = std::min(port.service.queueing_delay, Seconds{std::max(0.0, standing) / rate}) +
                       std::min(port.service.passing_delay, Seconds{passing / rate});
  return std::max(Seconds{0.0}, wait - flows * Seconds{bytes / rate});
}

/// The first of its links that leaves a flow the least share; -1: its cap does, or a link that keeps no queue.
int PortQueues::port_of(int path) const {
  const FlowPath& route = routes_.paths()[static_cast<std::size_t>(path)];
  int port = -1;
  double least = route.cap.value();
  for (const int id : route.links) {
    const double share = link(id).bandwidth.value() / static_cast<double>(network_.flows_across(id));
    if (share >= least) continue;
    least = share;
    port = id;
  }
  return port >= 0 && keeps_queue(link(port).service) ? port : -1;
}

}  // namespace simsync::detail
