// How one collective runs on a cluster: its protocol, its algorithm, its setup.
#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "platforms/topology.hpp"
#include "sim/plan/compile.hpp"
#include "sim/plan/plan_writer.hpp"

namespace simsync {
namespace {

/// What does not depend on the protocol.
struct HopRates {
  Path intra;
  Path inter;
  double rate_intra = 0.0;
  double rate_inter = 0.0;
  bool has_intra = false;
  bool has_inter = false;
};

double rate_along(const Topology& topology, const Path& path, double streams) {
  double rate = streams * path.stream_cap.value();
  for (const LinkId id : path.links)
    rate = std::min(rate, topology.links()[static_cast<std::size_t>(id)].bandwidth.value());
  return rate;
}

HopRates hop_rates(const Cluster& cluster, const std::vector<Place>& ranks) {
  HopRates out;
  const Place first = ranks.front();
  const auto other_node =
      std::find_if(ranks.begin(), ranks.end(), [&](const Place& p) { return p.node != first.node; });
  out.has_intra = ranks.size() > 1 && ranks[1].node == first.node;
  out.has_inter = other_node != ranks.end();
  std::vector<int> nodes{first.node};
  if (out.has_inter) nodes.push_back(other_node->node);
  const Topology topology(cluster, nodes);
  if (out.has_intra) {
    out.intra = topology.path(first, ranks[1]);
    out.rate_intra = rate_along(topology, out.intra, std::numeric_limits<double>::infinity());
  }
  if (out.has_inter) {
    out.inter = hop_path(topology, CollectiveAlgorithm::Ring, first, *other_node, false);
    out.rate_inter = rate_along(topology, out.inter, cluster.collective.channels);
  }
  return out;
}

LinkRates with_costs(const HopRates& hops, const CollectiveCosts& costs, bool overlap) {
  LinkRates out;
  out.overlap = overlap;
  if (hops.has_intra) {
    out.alpha_intra = hops.intra.latency + hops.intra.message_cost + costs.per_step_intra;
    out.rate_intra = BytesPerSecond{hops.rate_intra * costs.efficiency};
  }
  if (hops.has_inter) {
    out.alpha_inter = hops.inter.latency + hops.inter.message_cost + costs.per_step_inter;
    out.rate_inter = BytesPerSecond{hops.rate_inter * costs.efficiency};
  }
  return out;
}

}  // namespace

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

Seconds collective_setup(const CollectiveCosts& costs, double bytes) {
  return costs.launch + (costs.payload_rate ? Seconds{bytes / costs.payload_rate->value()} : Seconds{0.0});
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
  const CollectiveChoice choice =
      choose(primitive, algorithm, group_shape(plan), bytes, link_rates(cluster, plan.ranks));
  Op op;
  op.kind = OpKind::Collective;
  op.scope = Scope::Job;
  op.reason = {Phase::Synchronize, -1, name_of(primitive)};
  op.duration = collective_setup(cluster.collective, bytes);
  op.bytes = bytes;
  op.primitive = primitive;
  op.algorithm = choice.algorithm;
  op.protocol = choice.protocol;
  plan.ops.push_back(std::move(op));
  return plan;
}

namespace detail {

void PlanWriter::choose_protocol(Op& op) const {
  if (cluster.collective.protocols.empty()) return;
  const auto [begin, end] = plan.cell_ranks(op.scope, 0);
  const GroupShape group = op.scope == Scope::Job ? group_shape(plan) : GroupShape{.node_begin = {0, end - begin}};
  const std::vector<Place> ranks(plan.ranks.begin() + begin, plan.ranks.begin() + end);
  op.protocol = choose(op.primitive, op.algorithm, group, op.bytes, link_rates(cluster, ranks)).protocol;
}

}  // namespace detail
}  // namespace simsync
