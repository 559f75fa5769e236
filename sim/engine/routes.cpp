#include "sim/engine/routes.hpp"

#include <limits>
#include <string>

#include "base/error.hpp"
#include "sim/engine/rank_orbits.hpp"

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
  const Place own = groups_.first_place(op.grouping, group);
  const bool of_rank = op.grouping == kEachRank;
  const RouteKey key{.from = place_of(moved.from, own),
                     .to = place_of(moved.to, own),
                     .own_node = own.node,
                     .streams = moved.streams,
                     .connection = moved.connection,
                     .stands_for = groups_.stands_for(op.grouping, group),
                     .of_rank = of_rank};
  const auto [known, fresh] = shared_.try_emplace(key);
  if (fresh) known->second = find_shared(key, of_rank ? groups_.alike(group) : std::span(&own, 1));
  const SharedRoute& shared = known->second;
  const double messages = moved.messages;
  return {.path = shared.path,
          .delay = shared.latency + messages * shared.message_cost,
          .extra_bytes = messages * shared.half_size,
          .connection = shared.connection};
}

Routes::SharedRoute Routes::find_shared(const RouteKey& key, std::span<const Place> devices) {
  const Path path = topology_.path(key.from, key.to);
  SharedRoute out{.latency = path.latency,
                  .message_cost = path.message_cost,
                  .half_size = static_cast<double>(path.half_size.count)};
  std::vector<int> links(path.links.begin(), path.links.end());
  if (links.empty()) return out;
  if (devices.size() > 1) {
    // Ranks that stand for others copy between device and host: PlanSymmetry refuses transfers to a fixed place.
    SIMSYNC_ASSERT(key.from.node == key.own_node && key.to.node == key.own_node);
    const auto of = [](const Place& end, const Place& device) {
      return end.gpu >= 0 ? device : Place{device.node, -1};
    };
    std::vector<std::vector<int>> routes;
    for (const Place& device : devices)
      routes.push_back(topology_.path(of(key.from, device), of(key.to, device)).links);
    links = links_of_one(routes);
  }
  // Other nodes that this one stands for load the links of the server at the other end, too.
  for (const int link : path.links)
    if (topology_.node_of(link) != key.own_node)
      links.insert(links.end(), static_cast<std::size_t>(key.stands_for - 1), link);
  BytesPerSecond cap = path.stream_cap;
  if (key.from.node != key.to.node && key.streams > 0) {
    out.connection = connection_number({key.from.node, key.to.node, key.connection});
    if (cap < kUncapped) {
      links.push_back(connection_link(out.connection, static_cast<double>(key.streams) * cap));
      cap = kUncapped;
    }
  }
  out.path = path_along(links, cap);
  return out;
}

Place Routes::place_of(const End& end, const Place& device) {
  if (end.is_fixed()) return end.place;
  return end.kind == End::Kind::Device ? device : Place{device.node, -1};
}

int Routes::number_of(const ConnectionId& connection) const {
  const auto known = connection_numbers_.find(connection);
  return known == connection_numbers_.end() ? -1 : known->second;
}

int Routes::connection_number(const ConnectionId& connection) {
  const auto [known, fresh] = connection_numbers_.try_emplace(connection, static_cast<int>(connections_.size()));
  if (fresh) {
    connections_.push_back(connection);
    connection_links_.push_back(-1);
  }
  return known->second;
}

int Routes::connection_link(int number, BytesPerSecond capacity) {
  int& link = connection_links_[static_cast<std::size_t>(number)];
  if (link >= 0) return link;
  link = network_.add_link(capacity);
  SIMSYNC_ASSERT(link == static_cast<int>(links_.size()));
  const ConnectionId& ends = connection(number);
  links_.push_back({"node" + std::to_string(ends.from_node) + " to node" + std::to_string(ends.to_node) +
                        (ends.number == 0 ? " connection" : " server connection"),
                    capacity});
  return link;
}

int Routes::path_along(const std::vector<int>& links, BytesPerSecond cap) {
  const auto [known, fresh] = known_.try_emplace({links, cap.value()}, -1);
  if (!fresh) return known->second;
  known->second = network_.add_path(links, cap);
  flow_paths_.push_back({links, cap});  // the network numbers paths from zero
  return known->second;
}

}  // namespace simsync::detail
