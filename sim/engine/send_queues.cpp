#include "sim/engine/send_queues.hpp"

#include <algorithm>

namespace simsync::detail {

void SendQueues::hand_over(const ConnectionId& connection, int path, double bytes) {
  Queue& queue = queues_[connection];
  if (std::find(queue.paths.begin(), queue.paths.end(), path) == queue.paths.end()) queue.paths.push_back(path);
  queue.unsent += bytes;
}

void SendQueues::start(const ConnectionId& connection, double bytes) {
  queues_[connection].under_way += bytes;
}

void SendQueues::end(const ConnectionId& connection, double bytes) {
  Queue& queue = queues_[connection];
  queue.unsent = std::max(0.0, queue.unsent - bytes);
  queue.under_way = std::max(0.0, queue.under_way - bytes);
}

Seconds SendQueues::word(const ConnectionId& connection) const {
  const Seconds most = cluster_.group_of(connection.from_node).cpu.send_ahead;
  const auto known = queues_.find(connection);
  if (most.value() <= 0.0 || known == queues_.end() || known->second.unsent <= 0.0) return {};
  return std::min(most, time_of(known->second));
}

/// Of its bytes that have not been sent, with the share of its way that even sharing gives to its flows.
Seconds SendQueues::time_of(const Queue& queue) const {
  double left = 0.0;
  for (const int path : queue.paths) {
    left += network_.starting(path);
    network_.visit_flows(way(path).links.front(), [&](int other, double bytes_left) {
      if (other == path) left += std::max(0.0, bytes_left);
    });
  }
  const FlowPath& one = way(queue.paths.front());
  double share = one.cap.value();
  for (const int id : one.links) {
    int own = 0;
    int others = 0;
    network_.visit_flows(id, [&](int path, double) {
      const bool known = std::find(queue.paths.begin(), queue.paths.end(), path) != queue.paths.end();
      ++(known ? own : others);
    });
    const double rate = ways_.links()[static_cast<std::size_t>(id)].bandwidth.value();
    share = std::min(share, rate / (static_cast<double>(others) / std::max(1, own) + 1.0));
  }
  return Seconds{(queue.unsent - std::max(0.0, queue.under_way - left)) / share};
}

}  // namespace simsync::detail
