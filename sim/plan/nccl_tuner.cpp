#include "sim/plan/nccl_tuner.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "platforms/gpu_mesh.hpp"
#include "sim/plan/nccl_tables.hpp"

namespace simsync {
namespace {

namespace nccl = detail::nccl;

constexpr double kGiga = 1e9;
constexpr double kRounding = 1.01;  ///< 12.5 GB/s of PCIe count as the 12 of the list, and so do 11.97

/// A node of the group as NCCL sees it, in GB/s.
struct NodeView {
  double capability = 0.0;  ///< least compute capability
  bool nvlink = false;
  bool through_cpu = false;  ///< GPUs reach each other on PCIe through a CPU
  double gpu = 0.0;          ///< a GPU's links to the others, one direction
  double nic = 0.0;
  int nics = 1;
};

/// Nominal GB/s of a class; infinite where the cluster says nothing of it. NCCL does not measure.
double nominal(const Cluster& cluster, const std::string& name) {
  const auto found = cluster.links.find(name);
  if (found == cluster.links.end()) return std::numeric_limits<double>::infinity();
  return found->second.bandwidth.value() / kGiga;
}

std::size_t generation_of(double capability) {
  if (capability >= 10.0) return 3;
  if (capability >= 9.0) return 2;
  return capability >= 8.0 ? 1 : 0;
}

double capability_of(const Cluster& cluster, const std::string& device) {
  const auto found = cluster.devices.find(device);
  return found == cluster.devices.end() ? 0.0 : found->second.compute_capability;
}

/// Of the links of a GPU's port, those that rings among the ranks of the first node have; 0: they have none.
double share_of_ports(const NodeFabric& fabric, const std::vector<Place>& ranks) {
  if (fabric.gpu_link.empty() || !fabric.peer_to_peer) return 0.0;
  std::vector<int> gpus;
  for (const Place& rank : ranks)
    if (rank.node == ranks.front().node) gpus.push_back(rank.gpu);
  if (fabric.gpu_mesh.empty() || gpus.size() < 2) return 1.0;
  const GpuMesh mesh(fabric.gpu_mesh);
  return 1.0 * mesh.rings(gpus) / mesh.most_links();
}

NodeView node_view(const Cluster& cluster, const std::vector<Place>& ranks) {
  const NodeGroup& group = cluster.group_of(ranks.front().node);
  const NodeFabric& fabric = group.fabric;
  NodeView out;
  out.capability = std::numeric_limits<double>::infinity();
  int local = 0;
  for (const Place& rank : ranks) {
    out.capability = std::min(out.capability, capability_of(cluster, cluster.group_of(rank.node).device));
    local += rank.node == ranks.front().node ? 1 : 0;
  }
  const double ports = share_of_ports(fabric, ranks);
  out.nvlink = ports > 0.0;
  out.gpu = out.nvlink ? ports * nccl::kNvlinkShare[generation_of(out.capability)] * nominal(cluster, fabric.gpu_link)
                       : nccl::kPcieShare * nominal(cluster, fabric.pcie_link);
  const int beside = fabric.peer_to_peer ? std::max(1, fabric.gpus_per_switch) : 1;
  out.through_cpu = !out.nvlink && local > beside;
  const bool two_sockets = fabric.switches_per_socket > 0 && local > beside * fabric.switches_per_socket;
  const auto socket = cluster.links.find(fabric.socket_link);
  if (!out.nvlink && two_sockets && socket != cluster.links.end())
    out.gpu = std::min(out.gpu, nccl::kThroughCpu * nominal(cluster, fabric.socket_link) * socket->second.efficiency);
  const auto nic = cluster.links.find(group.nic_link);
  if (nic != cluster.links.end())
    out.nic = nic->second.reported_bandwidth.value_or(nic->second.bandwidth).value() / kGiga;
  out.nics = group.nics;
  return out;
}

std::span<const double> speeds(double capability, bool inter) {
  if (capability >= 10.0) return inter ? std::span<const double>(nccl::kSpeedsInter100) : nccl::kSpeedsIntra100;
  if (capability >= 9.0) return inter ? std::span<const double>(nccl::kSpeedsInter90) : nccl::kSpeedsIntra90;
  return inter ? std::span<const double>(nccl::kSpeedsInter) : nccl::kSpeedsIntra;
}

/// ncclTopoDupChannels.
void split(NcclGraph& graph, double capability) {
  if (graph.intra < nccl::kSplitFrom) return;
  if (capability > 8.0 && graph.intra < 50.0 && graph.channels > 4) return;
  graph.channels *= 2;
  graph.intra /= 2.0;
  graph.inter /= 2.0;
}

/// The most of channels times bandwidth, the fewest channels of equals. On PCIe there is one channel.
NcclGraph on_one_node(const NodeView& node) {
  const double limit = (node.through_cpu ? node.gpu / nccl::kThroughCpu : node.gpu) * kRounding;
  const auto list = speeds(node.capability, false);
  NcclGraph best{1, list.back(), 0.0};
  double most = 0.0;
  for (const double speed : list) {
    if (speed > limit) continue;
    if (most > 0.0 && speed < nccl::kLeastOfFound * best.intra) break;
    const int channels = node.nvlink && !std::isinf(limit) ? static_cast<int>(limit / speed) : 1;
    if (channels * speed <= most) continue;
    most = channels * speed;
    best = {channels, speed, speed};
  }
  split(best, node.capability);
  return best;
}

/// One channel per NIC, or as many as the GPU links have room for.
NcclGraph between_nodes(const NodeView& node, bool alone) {
  const double inside =
      alone ? std::numeric_limits<double>::infinity() : node.gpu / (node.through_cpu ? nccl::kThroughCpu : 1.0);
  const auto list = speeds(node.capability, true);
  const double limit = std::min(node.nic, inside) * kRounding;
  const auto found = std::find_if(list.begin(), list.end(), [&](double speed) { return speed <= limit; });
  const double speed = found == list.end() ? list.back() : *found;
  const int room = std::isinf(inside) ? node.nics : std::max(1, static_cast<int>(inside * kRounding / speed));
  NcclGraph out{std::min(node.nics, room), speed, speed};
  split(out, node.capability);
  return out;
}

/// On two nodes the search gives a tree up to twice the NIC's bandwidth inside the nodes, for it is that which counts.
NcclGraph tree_of(const NodeView& node, NcclGraph graph, bool alone, int nodes) {
  if (nodes != 2) return graph;
  double limit = std::numeric_limits<double>::infinity();
  if (!alone && node.nvlink) limit = node.gpu / graph.channels;
  // The first two GPUs of a chain carry half of the NIC's traffic each.
  if (!alone && !node.nvlink)
    limit = (node.gpu - graph.inter / 2.0) / graph.channels / (node.through_cpu ? nccl::kThroughCpu : 1.0);
  const auto list = speeds(node.capability, true);
  for (std::size_t i = list.size(); i-- > 0;) {
    if (graph.intra >= 2.0 * graph.inter) break;
    if (list[i] > graph.intra && list[i] <= limit * kRounding) graph.intra = list[i];
  }
  return graph;
}

/// None before the first release with a model of its time.
const nccl::Tables* tables_of(int version) {
  for (const nccl::Tables* tables : nccl::kTables)
    if (version >= tables->first) return tables;
  return nullptr;
}

/// Algorithm bandwidth in GB/s.
double bandwidth(const nccl::Tables& tables, const NcclView& view, const NcclCall& call, bool tree,
                 NcclProtocol protocol) {
  const auto generation = static_cast<std::size_t>(view.generation);
  const auto column = static_cast<std::size_t>(std::min(call.nodes, 3) - 1);
  const bool alone = call.ranks == call.nodes;
  const NcclGraph& graph = tree ? view.tree : view.ring;
  const double bus = std::min(graph.channels * (call.nodes <= 2 ? graph.intra : graph.inter),
                              view.generation == 1 ? tables.most_bus_80 : nccl::kNoLimit);
  const double most_ll = tables.most_ll[call.nodes == 1 ? generation : 0][column];
  const auto channels = [&](const nccl::ByGeneration& table) { return graph.channels * table[generation][column]; };
  if (!tree) {
    const int steps = (call.primitive == CollectivePrimitive::AllReduce ? 2 : 1) * (call.ranks - 1);
    double rate = bus;
    if (protocol == NcclProtocol::LL) rate = std::min(most_ll, bus * tables.ring_ll);
    if (protocol == NcclProtocol::LL128)
      rate = std::min({bus * (alone ? tables.ring_ll128_alone : tables.ring_ll128), channels(tables.ring_channel_ll128),
                       tables.most_ring_ll128});
    return rate * call.ranks / steps;
  }
  double rate = std::min({bus * tables.tree, channels(tables.tree_channel), tables.most_tree[column]});
  if (protocol == NcclProtocol::LL) rate = std::min(rate * tables.tree_ll, most_ll);
  if (protocol == NcclProtocol::LL128)
    rate = std::min(rate * (call.nodes == 1 ? tables.tree_ll128_one_node : tables.tree_ll128),
                    channels(tables.tree_channel_ll128));
  return 0.5 * rate * (alone ? tables.tree_alone : 1.0);
}

/// Hops of a ring that count as ones between nodes.
int far_hops(const nccl::Tables& tables, const NcclCall& call) {
  using FarHops = nccl::Tables::FarHops;
  const bool reduce = call.primitive == CollectivePrimitive::AllReduce;
  const int rounds = reduce ? 2 : 1;
  if (call.nodes == 1) return 0;
  if (tables.far_hops == FarHops::All) return rounds * (call.ranks - 1);
  return rounds * (call.nodes - (reduce && tables.far_hops == FarHops::TwiceNodes ? 0 : 1));
}

/// Hops of a tree inside a node, where it is a chain.
int chain_hops(const NcclCall& call) {
  return call.ranks / call.nodes - 1;
}

/// In us.
double latency(const nccl::Tables& tables, const NcclView& view, const NcclCall& call, bool tree,
               NcclProtocol protocol) {
  const auto p = static_cast<std::size_t>(protocol);
  const auto a = static_cast<std::size_t>(tree ? nccl::kTree : nccl::kRing);
  const bool far_too = call.nodes > 1;
  double intra = (view.nvlink ? tables.nvlink_latency : tables.pcie_latency)[a][p];
  if (far_too && protocol == NcclProtocol::LL) intra *= tables.ll_inside;
  const bool alone = call.ranks == call.nodes;
  const double inter = tables.network_latency[alone && tables.alone_as_tree ? nccl::kTree : a][p];
  if (tree) {
    const double levels = std::floor(std::log2(call.nodes));
    return tables.base_latency[a][p] + 2.0 * (chain_hops(call) * intra + levels * inter);
  }
  const int rounds = call.primitive == CollectivePrimitive::AllReduce ? 2 : 1;
  const double overheads = protocol == NcclProtocol::Simple ? tables.simple_overheads : 1.0;
  if (far_too) intra = std::max(intra, tables.network_overhead * overheads);
  const int far = far_hops(tables, call);
  return tables.base_latency[a][p] + (rounds * (call.ranks - 1) - far) * intra + far * inter;
}

/// Before 2.5, in us; there was no choice of protocol to model.
std::optional<double> early_time(const NcclView& view, const NcclCall& call, bool tree) {
  const nccl::Threshold& t = nccl::kVersion204;
  const double ring_rate = t.ring_rate * (view.nvlink ? 2.0 * view.ring.channels : 1.0);
  const double ring_latency = t.ring_latency * (call.ranks - 1);
  constexpr double kPerMicro = 1e3;  // bytes per us of 1 GB/s
  if (!tree) return ring_latency + call.bytes / (kPerMicro * ring_rate);
  const double tree_latency = t.tree_latency_between * std::log2(call.nodes) + t.tree_latency_inside * chain_hops(call);
  if (view.version < nccl::kFirstTree || call.nodes < 2 || ring_latency <= tree_latency) return std::nullopt;
  const double share = view.nvlink ? t.tree_share_nvlink * (call.nodes == 2 ? 2.0 : 1.0) : t.tree_share;
  return tree_latency + call.bytes / (kPerMicro * ring_rate * share);
}

}  // namespace

const char* name_of(NcclProtocol protocol) {
  switch (protocol) {
    case NcclProtocol::LL:
      return "LL";
    case NcclProtocol::LL128:
      return "LL128";
    case NcclProtocol::Simple:
      return "Simple";
  }
  return "?";
}

NcclView nccl_view(const Cluster& cluster, const std::vector<Place>& ranks) {
  const NodeView node = node_view(cluster, ranks);
  int nodes = 1;
  for (std::size_t i = 1; i < ranks.size(); ++i) nodes += ranks[i].node != ranks[i - 1].node ? 1 : 0;
  const bool alone = nodes == static_cast<int>(ranks.size());
  NcclView out;
  out.version = cluster.collective.nccl_version;
  out.generation = static_cast<int>(generation_of(node.capability));
  out.nvlink = node.nvlink;
  out.ll128 = node.capability >= 7.0 && (alone || node.nvlink) &&
              (nodes == 1 || cluster.group_of(ranks.front().node).gpu_direct);
  out.ring = nodes == 1 ? on_one_node(node) : between_nodes(node, alone);
  out.tree = tree_of(node, out.ring, alone, nodes);
  return out;
}

std::optional<Seconds> nccl_time(const NcclView& view, const NcclCall& call, CollectiveAlgorithm algorithm,
                                 NcclProtocol protocol) {
  const bool tree = algorithm == CollectiveAlgorithm::DoubleBinaryTree;
  const bool reduce = call.primitive == CollectivePrimitive::AllReduce;
  if (!(tree && reduce) && algorithm != CollectiveAlgorithm::Ring) return std::nullopt;
  constexpr double kMicro = 1e-6;
  const nccl::Tables* known = tables_of(view.version);
  if (known == nullptr) {
    const auto time = early_time(view, call, tree);
    if (!time || protocol != NcclProtocol::Simple) return std::nullopt;
    return Seconds{kMicro * *time};
  }
  if (protocol == NcclProtocol::LL128 && !view.ll128) return std::nullopt;
  const nccl::Tables& tables = *known;
  // NCCL counts an all-gather by what every rank receives.
  const double bytes = call.primitive == CollectivePrimitive::AllGather ? call.ranks * call.bytes : call.bytes;
  double rate = bandwidth(tables, view, call, tree, protocol);
  double fixed = latency(tables, view, call, tree, protocol);
  const double power = std::floor(std::log2(std::max(bytes, 1.0) / 64.0));
  const auto& correction = tables.correction[static_cast<std::size_t>(protocol)];
  if (tree && power >= 0.0 && power < static_cast<double>(correction.size()))
    rate *= correction[static_cast<std::size_t>(power)];
  // Every channel of the search is used twice.
  const double per_rank = bytes / call.ranks;
  const double per_channel = per_rank / (2.0 * view.ring.channels);
  const bool many = per_channel >= tables.plateau_per_channel && per_rank >= tables.plateau_per_rank;
  if (!tree && reduce && protocol == NcclProtocol::Simple && call.nodes > 1 && many)
    fixed *= view.generation == 0 ? tables.plateau_before_80 : tables.plateau;
  return Seconds{kMicro * fixed + bytes / (kGiga * rate)};
}

NcclChoice nccl_choice(const NcclView& view, const NcclCall& call) {
  NcclChoice best{.time = Seconds{std::numeric_limits<double>::infinity()}};
  for (const auto algorithm : {CollectiveAlgorithm::DoubleBinaryTree, CollectiveAlgorithm::Ring}) {
    for (const auto protocol : {NcclProtocol::LL, NcclProtocol::LL128, NcclProtocol::Simple}) {
      const auto time = nccl_time(view, call, algorithm, protocol);
      if (time && *time < best.time) best = {algorithm, protocol, *time};
    }
  }
  return best;
}

}  // namespace simsync
