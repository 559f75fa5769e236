// How one collective runs on a cluster: its protocol, its algorithm, its setup.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "base/error.hpp"
#include "platforms/measured_ratios.hpp"
#include "platforms/topology.hpp"
#include "sim/plan/collective_alone.hpp"
#include "sim/plan/compile.hpp"
#include "sim/plan/plan_writer.hpp"
#include "strategies/names.hpp"

namespace simsync {
namespace {

/// What does not depend on the protocol. Rates are those of the links.
struct HopRates {
  Path intra;
  Path inter;
  double rate_intra = 0.0;
  double rate_intra_tree = 0.0;
  double rate_inter = 0.0;
  double rate_wire = 0.0;
  double rate_tree = 0.0;
  double rate_rank = 0.0;
  double rate_node = 0.0;
  bool has_intra = false;
  bool has_inter = false;
};

double rate_along(const Topology& topology, const Path& path, double streams) {
  double rate = streams * path.stream_cap.value();
  for (const LinkId id : path.links)
    rate = std::min(rate, topology.links()[static_cast<std::size_t>(id)].bandwidth.value());
  return rate;
}

std::vector<int> gpus_on(const std::vector<Place>& ranks, int node) {
  std::vector<int> out;
  for (const Place& rank : ranks)
    if (rank.node == node) out.push_back(rank.gpu);
  return out;
}

/// The least that a hop of a ring through a node's ranks reaches when all of them send: hops may share a link, such as
/// host memory.
double rate_in_ring(const Topology& topology, const std::vector<Place>& ranks, int node) {
  const std::vector<int> gpus = gpus_on(ranks, node);
  std::vector<Path> hops;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const Place next = ranks[(i + 1) % ranks.size()];
    if (ranks[i].node == node && next.node == node) hops.push_back(topology.ring_path(ranks[i], next, gpus));
  }
  std::map<LinkId, int> users;
  for (const Path& hop : hops)
    for (const LinkId id : hop.links) ++users[id];
  double rate = std::numeric_limits<double>::infinity();
  for (const Path& hop : hops) {
    rate = std::min(rate, hop.stream_cap.value());
    for (const LinkId id : hop.links)
      rate = std::min(rate, topology.links()[static_cast<std::size_t>(id)].bandwidth.value() / users[id]);
  }
  return rate;
}

HopRates hop_rates(const Cluster& cluster, const std::vector<Place>& ranks) {
  HopRates out;
  const Place first = ranks.front();
  const GpusInUse gpus = gpus_in_use(ranks);
  const auto nics = [&](const Place& p) { return nics_in_use(cluster.group_of(p.node), gpus.at(p.node)); };
  // Where nodes offer unequal numbers of NICs, the fewest set the pace.
  auto other_node = ranks.end();
  for (auto p = ranks.begin(); p != ranks.end(); ++p)
    if (p->node != first.node && (other_node == ranks.end() || nics(*p) < nics(*other_node))) other_node = p;
  const auto neighbors =
      std::adjacent_find(ranks.begin(), ranks.end(), [](const Place& a, const Place& b) { return a.node == b.node; });
  out.has_intra = neighbors != ranks.end();
  out.has_inter = other_node != ranks.end();
  std::set<int> nodes{first.node};
  if (out.has_inter) nodes.insert(other_node->node);
  if (out.has_intra) nodes.insert(neighbors->node);
  const Topology topology(cluster, std::vector<int>(nodes.begin(), nodes.end()), gpus);
  constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  if (out.has_intra) {
    out.intra = topology.ring_path(*neighbors, *(neighbors + 1), gpus_on(ranks, neighbors->node));
    out.rate_intra = rate_in_ring(topology, ranks, neighbors->node);
    out.rate_intra_tree = std::min(out.rate_intra, 0.5 * out.intra.stream_cap.value());
  }
  if (!out.has_inter) return out;
  const auto streams = [&](CollectiveAlgorithm algorithm) {
    return streams_of_hop(cluster.collective, algorithm, true);
  };
  const std::vector<int> beside = gpus_on(ranks, first.node);
  const auto path = [&](CollectiveAlgorithm algorithm) {
    return hop_path(topology, cluster.collective, algorithm, {first, *other_node, beside}).path;
  };
  out.inter = path(CollectiveAlgorithm::Ring);
  out.rate_inter = rate_along(topology, out.inter, streams(CollectiveAlgorithm::Ring));
  out.rate_wire = rate_along(topology, out.inter, kNoLimit);
  out.rate_tree = rate_along(topology, out.inter, streams(CollectiveAlgorithm::DoubleBinaryTree));
  out.rate_rank =
      rate_along(topology, path(CollectiveAlgorithm::Hierarchical), streams(CollectiveAlgorithm::Hierarchical));
  out.rate_node = rate_along(topology, topology.between_nodes(first.node, other_node->node), kNoLimit);
  // Two nodes send to each other at the same time.
  const bool alone = std::all_of(ranks.begin(), ranks.end(),
                                 [&](const Place& p) { return p.node == *nodes.begin() || p.node == *nodes.rbegin(); });
  if (cluster.network.pair_bandwidth && alone) {
    const double half = 0.5 * cluster.network.pair_bandwidth->value();
    out.rate_inter = std::min(out.rate_inter, half);
    out.rate_wire = std::min(out.rate_wire, half);
    out.rate_node = std::min(out.rate_node, half);
  }
  return out;
}

LinkRates with_costs(const HopRates& hops, const CollectiveCosts& costs, bool overlap) {
  LinkRates out;
  out.overlap = overlap;
  if (hops.has_intra) {
    out.half_intra = costs.efficiency * static_cast<double>(hops.intra.half_size.count);
    out.alpha_intra = hops.intra.latency + hops.intra.message_cost + costs.per_step_intra;
    out.rate_intra = BytesPerSecond{hops.rate_intra * costs.efficiency};
    out.rate_intra_tree = BytesPerSecond{hops.rate_intra_tree * costs.efficiency};
  }
  if (hops.has_inter) {
    out.half_inter = costs.efficiency * static_cast<double>(hops.inter.half_size.count);
    out.alpha_inter = hops.inter.latency + hops.inter.message_cost + costs.per_step_inter;
    out.rate_inter = BytesPerSecond{hops.rate_inter * costs.efficiency};
    out.rate_wire = BytesPerSecond{hops.rate_wire * costs.efficiency};
    out.rate_tree = BytesPerSecond{hops.rate_tree * costs.efficiency};
    out.rate_rank = BytesPerSecond{hops.rate_rank * costs.efficiency};
    out.rate_node = BytesPerSecond{hops.rate_node * costs.efficiency};
  }
  return out;
}

}  // namespace

double streams_of_hop(const CollectiveCosts& costs, CollectiveAlgorithm algorithm, bool between_nodes) {
  const int channels = between_nodes ? std::max(1, costs.channels) : 1;
  return (algorithm == CollectiveAlgorithm::DoubleBinaryTree ? 0.5 : 1.0) * channels;
}

CollectiveCosts costs_of(const Cluster& cluster, const std::string& protocol) {
  CollectiveCosts costs = cluster.collective;
  if (protocol.empty()) return costs;
  const Protocol& one = costs.protocols.at(protocol);
  costs.per_step_intra = one.per_step_intra;
  costs.per_step_inter = one.per_step_inter;
  costs.efficiency = one.efficiency;
  return costs;
}

std::vector<ProtocolRates> link_rates(const Cluster& cluster, const std::vector<Place>& ranks) {
  const HopRates hops = hop_rates(cluster, ranks);
  std::vector<ProtocolRates> out;
  for (const auto& [name, protocol] : cluster.collective.protocols)
    out.push_back({name, with_costs(hops, costs_of(cluster, name), protocol.overlap)});
  if (out.empty()) out.push_back({{}, with_costs(hops, cluster.collective, false)});
  return out;
}

CollectiveAlgorithm library_algorithm(const Cluster& cluster) {
  const auto& words = collective_algorithm_words();
  if (const auto known = find_word(words, cluster.collective.algorithm)) return *known;
  throw PlanError(fmt::format("collective.algorithm of cluster '{}' is '{}': expected one of {}", cluster.name,
                              cluster.collective.algorithm, fmt::join(names_in(words), ", ")));
}

GroupCosts group_costs(const Cluster& cluster, const std::vector<Place>& ranks) {
  Plan plan;
  plan.set_ranks(ranks);
  return {group_shape(plan), link_rates(cluster, ranks), nccl_view(cluster, ranks), library_algorithm(cluster),
          std::make_shared<CollectiveAlone>(cluster, ranks)};
}

Seconds collective_setup(const CollectiveCosts& costs, double bytes) {
  return costs.launch + (costs.payload_rate ? Seconds{bytes / costs.payload_rate->value()} : Seconds{0.0});
}

bool is_own(const CollectiveCosts& costs, CollectiveAlgorithm algorithm) {
  if (algorithm == CollectiveAlgorithm::Auto) return true;
  if (costs.algorithm != "auto") return costs.algorithm == name_of(algorithm);
  return algorithm == CollectiveAlgorithm::Ring || algorithm == CollectiveAlgorithm::DoubleBinaryTree;
}

double ratio_of(const CollectiveCosts& costs, CollectivePrimitive primitive, const GroupShape& group, double bytes) {
  if (costs.measured.empty() || !group.alike()) return 1.0;
  return measured_ratio(costs.measured, name_of(primitive), group.nodes(), group.ranks(), bytes);
}

Plan collective_plan(const Cluster& cluster, std::vector<Place> ranks, CollectivePrimitive primitive,
                     CollectiveAlgorithm algorithm, double bytes) {
  SIMSYNC_ASSERT(!ranks.empty());
  for (const Place& rank : ranks) {
    if (rank.node < cluster.node_count() && rank.gpu < cluster.group_of(rank.node).gpus) continue;
    throw PlanError("cluster '" + cluster.name + "' has no " + name_of(rank));
  }
  Plan plan;
  plan.model = name_of(primitive);
  plan.strategy = name_of(primitive);
  plan.set_ranks(std::move(ranks));
  const CollectiveChoice choice = choose(primitive, algorithm, group_costs(cluster, plan.ranks), bytes);
  Op op;
  op.grouping = kWholeJob;
  op.reason = {Phase::Synchronize, -1, name_of(primitive)};
  op.body = Collective{.primitive = primitive,
                       .algorithm = choice.algorithm,
                       .protocol = choice.protocol,
                       .bytes = bytes,
                       .setup = collective_setup(cluster.collective, bytes)};
  plan.ops.push_back(std::move(op));
  detail::apply_ratios(plan, cluster.collective);
  return plan;
}

namespace detail {

void apply_ratios(Plan& plan, const CollectiveCosts& costs) {
  for (Op& op : plan.ops) {
    auto* all = std::get_if<Collective>(&op.body);
    if (all == nullptr || !is_own(costs, all->algorithm)) continue;
    all->ratio = ratio_of(costs, all->primitive, group_shape(plan, plan.grouping(op.grouping).ranks(0)), all->bytes);
    all->setup += (all->ratio - 1.0) * collective_setup(costs, all->bytes);
  }
}

void PlanWriter::choose_protocol(Op& op) const {
  if (cluster.collective.protocols.empty()) return;
  std::vector<Place> ranks;
  for (const int rank : plan.grouping(op.grouping).ranks(0))
    ranks.push_back(plan.ranks[static_cast<std::size_t>(rank)]);
  Collective& all = op.collective();
  all.protocol = choose(all.primitive, all.algorithm, group_costs(cluster, ranks), all.bytes).protocol;
}

}  // namespace detail
}  // namespace simsync
