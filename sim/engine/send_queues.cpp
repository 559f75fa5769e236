#include "sim/engine/send_queues.hpp"

#include <algorithm>

namespace simsync::detail {

void SendQueues::hand_over(const ConnectionId& connection, int path, double bytes) {
  Queue& queue = queues_[connection];
  queue.path = path;
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

/// Of its bytes that have not been sent, with the share of its path that even sharing gives to its flows.
Seconds SendQueues::time_of(const Queue& queue) const {
  double left = network_.starting(queue.path);
  int flows = 0;
  const std::vector<int>& links = ways_.paths()[static_cast<std::size_t>(queue.path)].links;
  network_.visit_flows(links.front(), [&](int path, double bytes_left) {
    if (path != queue.path) return;
    left += std::max(0.0, bytes_left);
    ++flows;
  });
  double share = ways_.paths()[static_cast<std::size_t>(queue.path)].cap.value();
  for (const int id : links) {
    const double others = static_cast<double>(network_.flows_across(id)) - flows;
    share = std::min(
        share, ways_.links()[static_cast<std::size_t>(id)].bandwidth.value() / (others / std::max(1, flows) + 1.0));
  }
  return Seconds{(queue.unsent - std::max(0.0, queue.under_way - left)) / share};
}

}  // namespace simsync::detail
