#include "sim/engine/routes.hpp"

#include <limits>
#include <string>

#include "base/error.hpp"

namespace simsync::detail {
namespace {

constexpr BytesPerSecond kUncapped{std::numeric_limits<double>::infinity()};

}  // namespace

Routes::Routes(const Plan& plan, const Groups& groups, const Topology& topology, FlowNetwork& network)
    : plan_(plan), groups_(groups), topology_(topology), network_(network), routes_(groups.instances()) {
  std::vector<BytesPerSecond> bandwidths;
  for (const Link& link : topology_.links()) {
    bandwidths.push_back(link.bandwidth);
    links_.push_back(link);
  }
  network_.begin(bandwidths);
}

const Route& Routes::route_of(const Instance& transfer) {
  auto& slot = routes_[groups_.number(transfer.op, transfer.group)];
  if (!slot) slot = std::make_unique<Route>(find(plan_.ops[static_cast<std::size_t>(transfer.op)], transfer.group));
  return *slot;
}

Route Routes::find(const Op& op, int group) {
  const Transfer& moved = op.transfer();
  const Place from = place_of(moved.from, op, group);
  const Place to = place_of(moved.to, op, group);
  const Path path = topology_.path(from, to);
  Route route;
  route.delay = path.latency + static_cast<double>(moved.messages) * path.message_cost;
  route.extra_bytes = static_cast<double>(moved.messages) * static_cast<double>(path.half_size.count);
  std::vector<int> links(path.links.begin(), path.links.end());
  if (links.empty()) return route;
  // Other nodes that this one stands for load the links of the server at the other end, too.
  const int others = groups_.stands_for(op.grouping, group) - 1;
  const int own = groups_.first_place(op.grouping, group).node;
  for (const int link : path.links)
    if (topology_.node_of(link) != own) links.insert(links.end(), static_cast<std::size_t>(others), link);
  BytesPerSecond cap = path.stream_cap;
  if (from.node != to.node && moved.streams > 0) {
    route.connection = {from.node, to.node, moved.connection};
    if (cap < kUncapped) {
      links.push_back(connection_link(route.connection, static_cast<double>(moved.streams) * cap));
      cap = kUncapped;
    }
  }
  route.path = path_along(links, cap);
  return route;
}

Place Routes::place_of(const End& end, const Op& op, int group) const {
  if (end.kind == End::Kind::Fixed) return end.place;
  const Place device = groups_.first_place(op.grouping, group);
  return end.kind == End::Kind::Device ? device : Place{device.node, -1};
}

int Routes::connection_link(const ConnectionId& connection, BytesPerSecond capacity) {
  const auto [known, fresh] = connection_links_.try_emplace(connection, -1);
  if (!fresh) return known->second;
  known->second = network_.add_link(capacity);
  SIMSYNC_ASSERT(known->second == static_cast<int>(links_.size()));
  const std::string ends =
      "node" + std::to_string(connection.from_node) + " to node" + std::to_string(connection.to_node);
  links_.push_back({ends + (connection.number == 0 ? " connection" : " server connection"), capacity});
  return known->second;
}

int Routes::path_along(const std::vector<int>& links, BytesPerSecond cap) {
  const auto [known, fresh] = known_.try_emplace({links, cap.value()}, -1);
  if (!fresh) return known->second;
  known->second = network_.add_path(links, cap);
  flow_paths_.push_back({links, cap});  // the network numbers paths from zero
  return known->second;
}

}  // namespace simsync::detail
