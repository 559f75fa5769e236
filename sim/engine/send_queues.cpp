#include "sim/engine/send_queues.hpp"

#include <algorithm>

namespace simsync::detail {

SendQueues::SendQueues(const Cluster& cluster, const FlowNetwork& network, const Routes& routes)
    : cluster_(cluster),
      network_(network),
      routes_(routes),
      delay_(std::any_of(cluster.groups.begin(), cluster.groups.end(),
                         [](const NodeGroup& group) { return group.cpu.send_ahead.value() > 0.0; })) {}

SendQueues::Queue& SendQueues::queue_at(int connection) {
  const auto i = static_cast<std::size_t>(connection);
  if (i >= queues_.size()) queues_.resize(i + 1);
  return queues_[i];
}

void SendQueues::hand_over(int connection, int path, double bytes) {
  if (!delay_) return;
  Queue& queue = queue_at(connection);
  if (std::find(queue.paths.begin(), queue.paths.end(), path) == queue.paths.end()) queue.paths.push_back(path);
  queue.unsent += bytes;
}

void SendQueues::start(int connection, double bytes) {
  if (delay_) queue_at(connection).under_way += bytes;
}

void SendQueues::end(int connection, double bytes) {
  if (!delay_) return;
  constexpr double kHalfByte = 0.5;  // sums of parts of bytes leave less
  const auto without = [&](double sum) { return sum - bytes < kHalfByte ? 0.0 : sum - bytes; };
  Queue& queue = queue_at(connection);
  queue.unsent = without(queue.unsent);
  queue.under_way = without(queue.under_way);
}

Seconds SendQueues::control_message(const ConnectionId& connection) const {
  if (!delay_) return {};
  const Seconds most = cluster_.group_of(connection.from_node).cpu.send_ahead;
  const int number = routes_.number_of(connection);
  if (most.value() <= 0.0 || number < 0 || static_cast<std::size_t>(number) >= queues_.size()) return {};
  const Queue& queue = queues_[static_cast<std::size_t>(number)];
  return queue.unsent <= 0.0 ? Seconds{} : std::min(most, time_of(queue));
}

/// Of its bytes that have not been sent, with the share that even sharing gives to its flows on the links which all of
/// them take. What others start at this very instant does not count yet.
Seconds SendQueues::time_of(const Queue& queue) const {
  double left = 0.0;
  int own = 0;
  for (const int path : queue.paths) {
    left += network_.starting_bytes(path);
    network_.visit_flows(path_of(path).links.front(), [&](int other, double bytes_left) {
      if (other != path) return;
      left += std::max(0.0, bytes_left);
      ++own;
    });
  }
  const auto common = [&](int id) {
    return std::all_of(queue.paths.begin(), queue.paths.end(), [&](int path) {
      const std::vector<int>& links = path_of(path).links;
      return std::find(links.begin(), links.end(), id) != links.end();
    });
  };
  const FlowPath& last = path_of(queue.paths.back());
  double share = last.cap.value();
  for (const int id : last.links) {
    if (!common(id)) continue;
    const double others = static_cast<double>(network_.flows_across(id)) - own;
    const double rate = routes_.links()[static_cast<std::size_t>(id)].bandwidth.value();
    share = std::min(share, rate / (others / std::max(1, own) + 1.0));
  }
  return Seconds{std::max(0.0, queue.unsent - std::max(0.0, queue.under_way - left)) / share};
}

}  // namespace simsync::detail
