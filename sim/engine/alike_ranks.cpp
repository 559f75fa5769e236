#include "sim/engine/alike_ranks.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "sim/plan/collective_maker.hpp"
#include "sim/plan/link_map.hpp"

namespace simsync::detail {
namespace {

bool is_of_device(const End& end) {
  return end.kind == End::Kind::Device;
}

/// Of one op, as alone: empty when the shift of ranks leaves it as it is.
std::string op_tells_apart(const Plan& plan, const Op& op) {
  if (op.random_order) return "every worker draws an order of its own";
  const bool of_rank = op.grouping == kEachRank;
  if (of_rank && op.queue >= 0 && plan.queues[static_cast<std::size_t>(op.queue)].grouping != kEachRank)
    return "ranks of a node wait for each other in a queue";
  switch (op.kind()) {
    case OpKind::Compute:
      return of_rank ? "" : "a device computes for others";
    case OpKind::HostWork:
      return of_rank ? "hosts work for one rank after another" : "";
    case OpKind::Transfer: {
      const Transfer& moved = op.transfer();
      const bool of_server = moved.from.is_fixed() || moved.to.is_fixed();
      if (of_rank) return of_server ? "ranks of a node transfer by themselves" : "";
      return is_of_device(moved.from) || is_of_device(moved.to) ? "one device of a node transfers for all" : "";
    }
    case OpKind::Collective:
      if (op.grouping != kEachNode) return "collectives are not those of whole nodes";
      return op.collective().algorithm == CollectiveAlgorithm::Ring && !is_chain(op.collective().primitive)
                 ? ""
                 : "ranks of a node have different parts in a collective";
  }
  return {};
}

/// Whether a shift of a node's ranks is one of its links, too.
bool is_symmetric(const Topology& topology, const std::vector<Place>& ranks) {
  LinkMap shift(topology);
  const Place host{ranks.front().node, -1};
  std::vector<int> gpus;
  for (const Place& rank : ranks) gpus.push_back(rank.gpu);
  const auto at = [&](std::size_t i) { return ranks[i % ranks.size()]; };
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (!topology.links_beside_compute(at(i)).empty()) return false;
    if (!shift.carries(topology.path(at(i), host), topology.path(at(i + 1), host))) return false;
    if (!shift.carries(topology.path(host, at(i)), topology.path(host, at(i + 1)))) return false;
    if (!shift.carries(topology.ring_path(at(i), at(i + 1), gpus), topology.ring_path(at(i + 1), at(i + 2), gpus)))
      return false;
  }
  const NodeGroup& group = topology.cluster().group_of(host.node);
  return group.nic_link.empty() || shift.keeps(topology.network_path(host, host));
}

}  // namespace

std::string ranks_of_nodes_differ(const Plan& plan, const Cluster& cluster) {
  if (plan.steps_vary() || plan.progress.backups > 0) return "every rank draws how long its steps take";
  if (plan.groupings.size() != kWholeJob + 1) return "groups of ranks tell them apart";
  for (const Op& op : plan.ops)
    if (std::string why = op_tells_apart(plan, op); !why.empty()) return why;
  bool several = false;
  std::set<std::pair<const NodeGroup*, std::vector<int>>> seen;  // nodes of one kind with the same GPUs in the job
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const std::vector<Place> ranks(plan.ranks.begin() + plan.node_begin[i],
                                   plan.ranks.begin() + plan.node_begin[i + 1]);
    if (ranks.size() < 2) continue;
    several = true;
    std::vector<int> gpus;
    for (const Place& rank : ranks) gpus.push_back(rank.gpu);
    if (!seen.emplace(&cluster.group_of(plan.nodes[i]), std::move(gpus)).second) continue;
    const Topology topology(cluster, std::vector{plan.nodes[i]}, gpus_in_use(ranks));
    if (!is_symmetric(topology, ranks)) return "the GPUs of a node differ in their links";
  }
  return several ? "" : "nodes have one rank";
}

std::vector<LinkId> links_of_one(const std::vector<std::vector<LinkId>>& routes) {
  std::vector<LinkId> out;
  for (std::size_t place = 0; place < routes.front().size(); ++place) {
    std::set<LinkId> links;
    for (const auto& route : routes) links.insert(route[place]);
    out.insert(out.end(), routes.size() / links.size(), *links.begin());
  }
  return out;
}

void merge_alike_hops(RoutedSchedule& schedule,
                      const std::function<int(const std::vector<LinkId>&, BytesPerSecond)>& path_of) {
  if (schedule.pipelines.size() != 1 || !schedule.pipelines.front().ring || schedule.hops.size() < 2) return;
  RoutedHop all = schedule.hops.front();
  std::vector<std::vector<LinkId>> routes;
  for (const RoutedHop& hop : schedule.hops) {
    const bool alike = hop.path >= 0 && !hop.inter && hop.after.empty() && hop.bytes == all.bytes &&
                       hop.rounds == all.rounds && hop.alpha == all.alpha && hop.half == all.half &&
                       hop.links.size() == all.links.size() && hop.cap == all.cap && hop.nominal == all.nominal &&
                       hop.overlap == all.overlap;
    if (!alike) return;
    routes.push_back(hop.links);
  }
  all.links = links_of_one(routes);
  all.path = path_of(all.links, all.cap);
  all.needs.clear();
  all.unblocks.clear();
  schedule.hops = {all};
  schedule.members = {{0}};
}

}  // namespace simsync::detail
