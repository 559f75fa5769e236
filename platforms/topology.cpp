#include "platforms/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "platforms/topology_build.hpp"

namespace simsync {

using detail::LinkCosts;
using detail::LinkRow;
using detail::NodeLayout;

namespace {

constexpr std::size_t kMostLinks = 15;  // on any way

std::vector<int> first_nodes(const Cluster& cluster, int nodes) {
  if (nodes < 0 || nodes > cluster.node_count())
    throw PlanError(fmt::format("cluster '{}' has {} nodes, {} asked for", cluster.name, cluster.node_count(), nodes));
  std::vector<int> numbers(static_cast<std::size_t>(nodes));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

void add_costs(Path& path, const LinkCosts& costs) {
  path.latency += costs.latency;
  path.message_cost += costs.message_cost;
  path.half_size = std::max(path.half_size, costs.half_size);
  path.stream_cap = std::min(path.stream_cap, costs.cap);
}

void add(Path& path, LinkId link, const LinkCosts& costs) {
  path.links.push_back(link);
  add_costs(path, costs);
}

void add_out(Path& path, LinkId first, const LinkRow& row, int unit) {
  if (row.exists()) add(path, first + row.out(unit), row.costs);
}

void add_in(Path& path, LinkId first, const LinkRow& row, int unit) {
  if (row.exists()) add(path, first + row.in(unit), row.costs);
}

}  // namespace

Topology::Topology(const Cluster& cluster, int nodes) : Topology(cluster, first_nodes(cluster, nodes)) {}

GpusInUse gpus_in_use(const std::vector<Place>& places) {
  GpusInUse out;
  for (const Place& place : places)
    if (place.gpu >= 0) ++out[place.node];
  return out;
}

int nics_in_use(const NodeGroup& group, int gpus) {
  if (!group.nearest_nics || gpus <= 0 || gpus >= group.gpus) return group.nics;
  return (gpus * group.nics + group.gpus - 1) / group.gpus;
}

Topology::Topology(const Cluster& cluster, std::vector<int> node_numbers, GpusInUse gpus)
    : cluster_(cluster), gpus_(std::move(gpus)) {
  std::sort(node_numbers.begin(), node_numbers.end());
  TopologyBuilder(*this).build(node_numbers);
}

const Topology::NodeEntry& Topology::entry(Place place) const {
  // All of the first n nodes take part most of the time: the number is then the index.
  const auto guess = static_cast<std::size_t>(std::max(place.node, 0));
  auto found = guess < nodes_.size() && nodes_[guess].number == place.node
                   ? nodes_.begin() + static_cast<std::ptrdiff_t>(guess)
                   : std::lower_bound(nodes_.begin(), nodes_.end(), place.node,
                                      [](const NodeEntry& e, int number) { return e.number < number; });
  if (found == nodes_.end() || found->number != place.node)
    throw PlanError(fmt::format("node{} of cluster '{}' takes no part", place.node, cluster_.name));
  if (place.gpu < -1 || place.gpu >= layouts_[static_cast<std::size_t>(found->group)].gpus)
    throw PlanError(fmt::format("there is no {}: the nodes of group '{}' have {} GPUs", name_of(place),
                                cluster_.groups[static_cast<std::size_t>(found->group)].name,
                                layouts_[static_cast<std::size_t>(found->group)].gpus));
  return *found;
}

void Topology::add_to_host(Path& path, const NodeEntry& node, int gpu, bool to_nic) const {
  const NodeLayout& layout = layouts_[static_cast<std::size_t>(node.group)];
  const bool direct = to_nic && gpu >= 0 && layout.gpu_direct;
  if (gpu >= 0) {
    add_out(path, node.first, layout.pcie, gpu);
    if (!(direct && layout.nic_below_switch)) add_out(path, node.first, layout.uplink, layout.switch_of(gpu));
  }
  if (!direct) add_out(path, node.first, layout.memory, 0);
}

void Topology::add_from_host(Path& path, const NodeEntry& node, int gpu, bool from_nic) const {
  const NodeLayout& layout = layouts_[static_cast<std::size_t>(node.group)];
  const bool direct = from_nic && gpu >= 0 && layout.gpu_direct;
  if (!direct) add_in(path, node.first, layout.memory, 0);
  if (gpu < 0) return;
  if (!(direct && layout.nic_below_switch)) add_in(path, node.first, layout.uplink, layout.switch_of(gpu));
  add_in(path, node.first, layout.pcie, gpu);
}

void Topology::add_between_gpus(Path& path, const NodeEntry& node, std::pair<int, int> gpus, int links) const {
  const NodeLayout& layout = layouts_[static_cast<std::size_t>(node.group)];
  const auto [from, to] = gpus;
  if (layout.port.exists() && (!layout.mesh || links > 0)) {
    add_out(path, node.first, layout.port, from);
    add_in(path, node.first, layout.port, to);
    if (!layout.mesh) return;
    const LinkId way_out = node.first + layout.port.out(from);
    const BytesPerSecond port = links_[static_cast<std::size_t>(way_out)].bandwidth;
    path.stream_cap = std::min(path.stream_cap, (1.0 * links / layout.mesh->most_links()) * port);
    return;
  }
  const bool staged = !layout.peer_to_peer;
  const bool other_switch = staged || layout.switch_of(from) != layout.switch_of(to);
  add_out(path, node.first, layout.pcie, from);
  if (other_switch) add_out(path, node.first, layout.uplink, layout.switch_of(from));
  if (layout.socket_of(from) != layout.socket_of(to)) add_out(path, node.first, layout.socket, layout.socket_of(from));
  if (staged) add_out(path, node.first, layout.memory, 0);
  // Staged between GPUs of one switch, a half-duplex uplink serves both ways and counts once.
  const bool same_uplink = layout.uplink.step == 1 && layout.switch_of(from) == layout.switch_of(to);
  if (other_switch && !same_uplink) add_in(path, node.first, layout.uplink, layout.switch_of(to));
  add_in(path, node.first, layout.pcie, to);
}

LinkId Topology::link_of_pair(const NodeEntry& one, const NodeEntry& other) const {
  // Pairs (0, 1), (0, 2) ... (0, n-1), (1, 2) ...: i (2n - i - 1) / 2 of them begin with less than i.
  const auto [i, j] = std::minmax({&one - nodes_.data(), &other - nodes_.data()});
  const auto before = i * (2 * static_cast<std::ptrdiff_t>(nodes_.size()) - i - 1) / 2;
  return first_pair_ + static_cast<LinkId>(before + j - i - 1);
}

void Topology::add_across_network(Path& path, Place sender, Place receiver) const {
  const NodeEntry& from = entry(sender);
  const NodeEntry& to = entry(receiver);
  const NodeLayout& left = layouts_[static_cast<std::size_t>(from.group)];
  const NodeLayout& right = layouts_[static_cast<std::size_t>(to.group)];
  if (sender.gpu >= 0) add_out(path, from.first, left.rail, left.rail_of(sender.gpu));
  const auto nic_of = [&](const NodeEntry& node) -> const LinkRow& {
    const LinkRow& nic = layouts_[static_cast<std::size_t>(node.group)].nic;
    if (!nic.exists())
      throw PlanError(fmt::format("node{} of cluster '{}' has no network: its group gives no nic_link", node.number,
                                  cluster_.name));
    return nic;
  };
  add_out(path, from.first, nic_of(from), 0);
  if (first_pair_ >= 0 && from.number != to.number) add(path, link_of_pair(from, to), LinkCosts{});
  const int per_leaf = cluster_.network.nodes_per_leaf;
  if (per_leaf > 0 && from.number / per_leaf != to.number / per_leaf) {
    const LinkCosts costs{.latency = cluster_.network.switch_latency, .message_cost = {}, .half_size = {}};
    (void)nic_of(to);  // its leaf has links only when it has a NIC
    add(path, leaf_up_[static_cast<std::size_t>(from.number / per_leaf)], costs);
    add(path, leaf_up_[static_cast<std::size_t>(to.number / per_leaf)] + 1, costs);
  }
  add_in(path, to.first, nic_of(to), 0);
  if (receiver.gpu >= 0) add_in(path, to.first, right.rail, right.rail_of(receiver.gpu));
}

Topology::NicsOf Topology::nics_of(int node, const std::vector<int>& gpus) const {
  const NodeEntry& at = entry({node, -1});
  const NodeLayout& layout = layouts_[static_cast<std::size_t>(at.group)];
  if (!layout.nic.exists()) return {};
  const auto rate = [&](const LinkRow& row) {
    const LinkId way_out = at.first + row.out(0);
    return links_[static_cast<std::size_t>(way_out)].bandwidth;
  };
  if (!layout.rail.exists()) return {at.nics > 1, rate(layout.nic)};
  std::set<int> rails;
  for (const int gpu : gpus) rails.insert(layout.rail_of(gpu));
  return {rails.size() > 1, std::min(rate(layout.nic), static_cast<double>(rails.size()) * rate(layout.rail))};
}

Path Topology::network_path(Place from, Place to) const {
  const NodeEntry& source = entry(from);
  const NodeEntry& target = entry(to);
  Path path;
  path.links.reserve(kMostLinks);
  add_to_host(path, source, from.gpu, true);
  add_across_network(path, from, to);
  add_from_host(path, target, to.gpu, true);
  return path;
}

Path Topology::path(Place from, Place to) const {
  if (from.node != to.node) return network_path(from, to);
  const NodeEntry& source = entry(from);
  Path path;
  if (from == to) return path;
  static_cast<void>(entry(to));
  path.links.reserve(kMostLinks);
  if (from.gpu >= 0 && to.gpu >= 0) {
    const auto& mesh = layouts_[static_cast<std::size_t>(source.group)].mesh;
    add_between_gpus(path, source, {from.gpu, to.gpu}, mesh ? mesh->links(from.gpu, to.gpu) : 0);
  } else if (from.gpu >= 0) {
    add_to_host(path, source, from.gpu, false);
  } else {
    add_from_host(path, source, to.gpu, false);
  }
  return path;
}

Path Topology::ring_path(Place from, Place to, const std::vector<int>& gpus) const {
  const NodeEntry& node = entry(from);
  const auto& mesh = layouts_[static_cast<std::size_t>(node.group)].mesh;
  if (!mesh) return path(from, to);
  static_cast<void>(entry(to));
  Path out;
  out.links.reserve(kMostLinks);
  add_between_gpus(out, node, {from.gpu, to.gpu}, mesh->rings(gpus));
  return out;
}

Path Topology::between_nodes(int from, int to) const {
  const NodeEntry& source = entry({from, -1});
  const NodeEntry& target = entry({to, -1});
  Path path;
  path.links.reserve(kMostLinks);
  const auto add_gpu_costs = [&](const NodeLayout& layout) {
    if (layout.pcie.exists()) add_costs(path, layout.pcie.costs);
    if (layout.uplink.exists() && !(layout.gpu_direct && layout.nic_below_switch)) add_costs(path, layout.uplink.costs);
  };
  const NodeLayout& left = layouts_[static_cast<std::size_t>(source.group)];
  const NodeLayout& right = layouts_[static_cast<std::size_t>(target.group)];
  add_gpu_costs(left);
  if (left.gpus == 0 || !left.gpu_direct) add_out(path, source.first, left.memory, 0);
  add_across_network(path, {from, -1}, {to, -1});
  if (right.gpus == 0 || !right.gpu_direct) add_in(path, target.first, right.memory, 0);
  add_gpu_costs(right);
  return path;
}

std::vector<std::pair<LinkId, BytesPerSecond>> Topology::links_beside_compute(Place gpu) const {
  const NodeEntry& node = entry(gpu);
  const detail::NodeLayout& layout = layouts_[static_cast<std::size_t>(node.group)];
  std::vector<std::pair<LinkId, BytesPerSecond>> out;
  for (const detail::LinkRow* row : {&layout.port, &layout.pcie}) {
    if (!row->exists() || row->rate_beside_compute >= 1.0) continue;
    for (int link = row->out(gpu.gpu); link <= row->in(gpu.gpu); ++link) {
      const LinkId id = node.first + link;
      out.emplace_back(id, row->rate_beside_compute * links_[static_cast<std::size_t>(id)].bandwidth);
    }
  }
  return out;
}

int Topology::node_of(LinkId link) const {
  const auto after = std::upper_bound(nodes_.begin(), nodes_.end(), link,
                                      [](LinkId id, const NodeEntry& node) { return id < node.first; });
  if (after == nodes_.begin()) return -1;
  const NodeEntry& node = *std::prev(after);
  const bool is_own = link < node.first + layouts_[static_cast<std::size_t>(node.group)].count;
  return is_own ? node.number : -1;
}

}  // namespace simsync
