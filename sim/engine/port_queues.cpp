#include "sim/engine/port_queues.hpp"

#include <algorithm>

namespace simsync::detail {
namespace {

bool keeps_queue(const Link& link) {
  return link.queueing_delay.value() > 0.0 || link.passing_delay.value() > 0.0;
}

}  // namespace

Seconds PortQueues::word(int from_node, int to_node, const std::vector<LinkId>& links, Seconds latency) {
  const Seconds now = network_.now();
  Seconds arrival = now + latency;
  for (const LinkId id : links) arrival += queue_at(id).wait;
  Seconds& last = last_arrival_[{from_node, to_node}];
  last = std::max(last, arrival);
  return last - now;
}

Seconds PortQueues::first_byte(int path, double bytes) const {
  Seconds sum;
  for (const int id : ways_.paths()[static_cast<std::size_t>(path)].links) {
    const Queue queue = queue_at(id);
    const Seconds shared = static_cast<double>(queue.flows) * Seconds{bytes / link(id).bandwidth.value()};
    sum += std::max(Seconds{0.0}, queue.wait - shared);
  }
  return sum;
}

PortQueues::Queue PortQueues::queue_at(int id) const {
  const Link& port = link(id);
  if (!keeps_queue(port)) return {};
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
  queue.wait = std::min(port.queueing_delay, Seconds{std::max(0.0, standing) / rate}) +
               std::min(port.passing_delay, Seconds{passing / rate});
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
  return port >= 0 && keeps_queue(link(port)) ? port : -1;
}

}  // namespace simsync::detail
