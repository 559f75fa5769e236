#include "platforms/topology_build.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"

namespace simsync {

using detail::LinkRow;
using detail::NodeLayout;

namespace {

int switches_of(const NodeLayout& layout) {
  return layout.gpus_per_switch > 0 ? (layout.gpus + layout.gpus_per_switch - 1) / layout.gpus_per_switch : layout.gpus;
}

int sockets_of(const NodeLayout& layout) {
  if (layout.switches_per_socket <= 0) return 1;
  return (switches_of(layout) + layout.switches_per_socket - 1) / layout.switches_per_socket;
}

}  // namespace

const LinkClass& TopologyBuilder::link_class(const std::string& name, const NodeGroup& group) const {
  const auto found = cluster_.links.find(name);
  if (found == cluster_.links.end())
    throw PlanError(fmt::format("group '{}' uses the link class '{}', which cluster '{}' does not describe", group.name,
                                name, cluster_.name));
  return found->second;
}

double TopologyBuilder::payload_rate(const LinkClass& link) const {
  const auto other = cluster_.network.background.find(link.name);
  const double share = other == cluster_.network.background.end() ? 0.0 : other->second;
  return link.bandwidth.value() * link.efficiency * (1.0 - share);
}

LinkRow TopologyBuilder::row(NodeLayout& layout, const LinkClass& link, int units, Charge charge) const {
  LinkRow row;
  row.first = layout.count;
  row.step = link.full_duplex ? 2 : 1;
  const double part = charge == Charge::Half ? 0.5 : 1.0;
  row.costs.latency = part * link.latency;
  row.costs.message_cost = part * link.message_cost;
  row.costs.half_size = link.half_size;
  row.service = link.service;
  row.rate_beside_compute = link.rate_beside_compute;
  if (link.per_flow_cap) row.costs.cap = *link.per_flow_cap;
  layout.count += units * row.step;
  return row;
}

void TopologyBuilder::add_fabric(NodeLayout& layout, const NodeGroup& group) const {
  const NodeFabric& fabric = group.fabric;
  const LinkClass& pcie = link_class(fabric.pcie_link, group);
  if (!fabric.gpu_link.empty() && fabric.peer_to_peer) {
    if (!fabric.gpu_mesh.empty()) layout.mesh.emplace(fabric.gpu_mesh);
    layout.port = row(layout, link_class(fabric.gpu_link, group), layout.gpus, Charge::Half);
  }
  layout.pcie = row(layout, pcie, layout.gpus, Charge::Whole);
  if (layout.gpus_per_switch > 0) {
    const LinkClass& uplink = fabric.switch_link.empty() ? pcie : link_class(fabric.switch_link, group);
    layout.uplink = row(layout, uplink, switches_of(layout), Charge::Whole);
  }
  if (sockets_of(layout) > 1)
    layout.socket = row(layout, link_class(fabric.socket_link, group), sockets_of(layout), Charge::Whole);
}

NodeLayout TopologyBuilder::layout_of(const NodeGroup& group) const {
  NodeLayout layout;
  layout.gpus = group.gpus;
  layout.gpus_per_switch = group.fabric.gpus_per_switch;
  layout.switches_per_socket = group.fabric.switches_per_socket;
  layout.peer_to_peer = group.fabric.peer_to_peer;
  layout.gpu_direct = group.gpu_direct;
  if (!group.nic_link.empty()) {
    const LinkClass& nic = link_class(group.nic_link, group);
    layout.nic = row(layout, nic, 1, Charge::Half);
    if (group.nics > 1)
      layout.nic.costs.cap = std::min(layout.nic.costs.cap, BytesPerSecond{payload_rate(nic) / group.nic_slowdown});
    if (group.nics > 1 && group.gpus > 0 && group.nearest_nics) {
      layout.rails = std::min(group.nics, group.gpus);
      layout.rail = row(layout, nic, layout.rails, Charge::Half);
      layout.rail.costs = {};  // they are those of `nic`
      layout.rail.service = {};
    }
  }
  if (!group.fabric.memory_link.empty()) {
    layout.memory = row(layout, link_class(group.fabric.memory_link, group), 1, Charge::Whole);
    layout.count -= layout.memory.step - 1;  // one link for both directions: its rate is that of copies
    layout.memory.step = 1;
  }
  if (group.gpus > 0) add_fabric(layout, group);
  layout.nic_below_switch = group.nics >= switches_of(layout);
  return layout;
}

void TopologyBuilder::add_row(const LinkRow& row, int units, const std::string& prefix, const char* kind, double rate) {
  if (!row.exists()) return;
  const bool numbered = prefix.back() != '/';  // "node0/gpu" gets its number, "node0/" has one unit
  for (int i = 0; i < units; ++i) {
    std::string name = prefix;
    if (numbered) name.append(std::to_string(i)).append("/");
    name.append(kind);
    if (row.step == 2) {
      topology_.links_.push_back({name + "-out", BytesPerSecond{rate}, row.service});
      name += "-in";
    }
    topology_.links_.push_back({std::move(name), BytesPerSecond{rate}, row.service});
  }
}

int TopologyBuilder::nics_of(const NodeGroup& group, int node) const {
  const auto used = topology_.gpus_.find(node);
  return nics_in_use(group, used == topology_.gpus_.end() ? 0 : used->second);
}

void TopologyBuilder::add_names_and_rates(const NodeGroup& group, const NodeLayout& layout, int node, int nics) {
  const std::string prefix = "node" + std::to_string(node) + "/";
  const auto rate = [&](const std::string& name) { return payload_rate(link_class(name, group)); };
  const NodeFabric& fabric = group.fabric;
  if (layout.nic.exists()) {
    LinkRow row = layout.nic;
    row.service.burst.count *= nics;
    row.service.burst_at_once.count *= nics;
    add_row(row, 1, prefix, "nic", rate(group.nic_link) * nics / group.nic_slowdown);
  }
  if (layout.rail.exists())
    add_row(layout.rail, layout.rails, prefix + "nic", "rail",
            rate(group.nic_link) * group.nics / layout.rails / group.nic_slowdown);
  if (layout.memory.exists()) add_row(layout.memory, 1, prefix, "memory", rate(fabric.memory_link));
  if (group.gpus == 0) return;
  if (layout.port.exists()) add_row(layout.port, layout.gpus, prefix + "gpu", "port", rate(fabric.gpu_link));
  add_row(layout.pcie, layout.gpus, prefix + "gpu", "pcie", rate(fabric.pcie_link));
  if (layout.uplink.exists()) {
    const std::string& uplink = fabric.switch_link.empty() ? fabric.pcie_link : fabric.switch_link;
    add_row(layout.uplink, switches_of(layout), prefix + "switch", "uplink", rate(uplink));
  }
  if (layout.socket.exists())
    add_row(layout.socket, sockets_of(layout), prefix + "socket", "link", rate(fabric.socket_link));
}

double TopologyBuilder::leaf_rate(int leaf) const {
  const Network& network = cluster_.network;
  const long long first = static_cast<long long>(leaf) * network.nodes_per_leaf;
  const long long last = first + network.nodes_per_leaf;
  double sum = 0.0;
  double nodes = 0.0;
  long long begin = 0;
  for (const auto& group : cluster_.groups) {
    const long long end = begin + group.count;
    const long long below = std::min(end, last) - std::max(begin, first);
    begin = end;
    if (below <= 0 || group.nic_link.empty()) continue;
    nodes += static_cast<double>(below);
    sum += static_cast<double>(below) * group.nics * payload_rate(link_class(group.nic_link, group));
  }
  // The last leaf may have free ports: its uplink is that of a full one.
  return nodes > 0.0 ? sum / nodes * network.nodes_per_leaf / network.oversubscription : 0.0;
}

void TopologyBuilder::add_leaves() {
  const int per_leaf = cluster_.network.nodes_per_leaf;
  if (per_leaf <= 0 || topology_.nodes_.empty()) return;
  topology_.leaf_up_.assign(static_cast<std::size_t>(topology_.nodes_.back().number / per_leaf) + 1, -1);
  for (const auto& node : topology_.nodes_) {
    const int leaf = node.number / per_leaf;
    LinkId& up = topology_.leaf_up_[static_cast<std::size_t>(leaf)];
    const bool has_nic = topology_.layouts_[static_cast<std::size_t>(node.group)].nic.exists();
    if (up >= 0 || !has_nic) continue;
    up = static_cast<LinkId>(topology_.links_.size());
    const std::string prefix = "leaf" + std::to_string(leaf);
    const BytesPerSecond rate{leaf_rate(leaf)};
    topology_.links_.push_back({prefix + "/up", rate, {}});
    topology_.links_.push_back({prefix + "/down", rate, {}});
  }
}

void TopologyBuilder::add_pairs() {
  if (!cluster_.network.pair_bandwidth) return;
  topology_.first_pair_ = static_cast<LinkId>(topology_.links_.size());
  const auto& nodes = topology_.nodes_;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (std::size_t j = i + 1; j < nodes.size(); ++j)
      topology_.links_.push_back(
          {fmt::format("node{}-node{}/pair", nodes[i].number, nodes[j].number), *cluster_.network.pair_bandwidth});
  }
}

void TopologyBuilder::check_size(std::size_t nodes) const {
  constexpr std::size_t kMostLinks = 50'000'000;
  int most = 0;
  for (const auto& layout : topology_.layouts_) most = std::max(most, layout.count);
  const std::size_t pairs = cluster_.network.pair_bandwidth ? nodes * nodes / 2 : 0;
  if (nodes * static_cast<std::size_t>(most) + pairs > kMostLinks)
    throw PlanError(fmt::format("{} nodes of cluster '{}' have more than {} links: choose fewer nodes", nodes,
                                cluster_.name, kMostLinks));
}

void TopologyBuilder::build(const std::vector<int>& node_numbers) {
  for (const auto& group : cluster_.groups) topology_.layouts_.push_back(layout_of(group));
  check_size(node_numbers.size());
  topology_.nodes_.reserve(node_numbers.size());
  std::size_t group = 0;
  long long group_begin = 0;
  for (const int number : node_numbers) {
    while (group < cluster_.groups.size() && number >= group_begin + cluster_.groups[group].count)
      group_begin += cluster_.groups[group++].count;
    if (number < 0 || group == cluster_.groups.size()) (void)cluster_.group_of(number);  // throws
    if (!topology_.nodes_.empty() && topology_.nodes_.back().number == number)
      throw PlanError(fmt::format("node{} is named twice", number));
    const NodeLayout& layout = topology_.layouts_[group];
    const int nics = nics_of(cluster_.groups[group], number);
    topology_.nodes_.push_back({number, static_cast<int>(group), static_cast<LinkId>(topology_.links_.size()), nics});
    add_names_and_rates(cluster_.groups[group], layout, number, nics);
  }
  add_leaves();
  add_pairs();
}

}  // namespace simsync
