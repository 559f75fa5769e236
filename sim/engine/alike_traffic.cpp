#include "sim/engine/alike_traffic.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "platforms/topology.hpp"
#include "sim/plan/alike_nodes.hpp"
#include "sim/plan/compile.hpp"

namespace simsync::detail {
namespace {

/// The ranks of the first node. Where nodes look alike, the groups that have ranks there are like all others.
std::vector<Place> first_node(const Plan& plan) {
  return {plan.ranks.begin(), plan.ranks.begin() + plan.node_begin[1]};
}

/// Whether a transfer between devices of a node, or between one and the host, crosses a link that what leaves the node
/// crosses, too.
bool shares_links_inside(const Plan& plan, const Cluster& cluster) {
  const std::vector<Place> ranks = first_node(plan);
  const Place host{ranks.front().node, -1};
  const Topology topology(cluster, {host.node}, gpus_in_use(ranks));
  std::vector<int> gpus;
  for (const Place& rank : ranks) gpus.push_back(rank.gpu);
  std::vector<Path> leaving;
  std::vector<Path> inside;
  for (const Place& one : ranks) {
    inside.push_back(topology.path(one, host));
    inside.push_back(topology.path(host, one));
    for (const Place& other : ranks) {
      leaving.push_back(topology.network_path(one, other));
      if (other.gpu == one.gpu) continue;
      inside.push_back(topology.path(one, other));
      inside.push_back(topology.ring_path(one, other, gpus));
    }
  }
  return share_links(leaving, inside);
}

/// Whether a path crosses a link more than once.
bool crosses_twice(const Path& path) {
  return std::set<LinkId>(path.links.begin(), path.links.end()).size() < path.links.size();
}

/// Whether whatever a plan sends, collectives and transfers, goes through one queue of the whole job, one at a time.
bool sends_in_turn(const Plan& plan) {
  std::set<QueueId> queues;
  for (const Op& op : plan.ops)
    if (op.kind() == OpKind::Collective || op.kind() == OpKind::Transfer) queues.insert(op.queue);
  if (queues.size() != 1 || *queues.begin() < 0) return false;
  const Queue& queue = plan.queues[static_cast<std::size_t>(*queues.begin())];
  return queue.grouping == kWholeJob && queue.slots == 1;
}

/// What a plan sends.
struct Traffic {
  Traffic(const Plan& plan, const Cluster& cluster) {
    std::vector<const Op*> inside;
    for (const Op& op : plan.ops) {
      const bool collective = op.kind() == OpKind::Collective;
      if (!collective && op.kind() != OpKind::Transfer) continue;
      (collective && crosses_nodes(plan, op.grouping) ? between : inside).push_back(&op);
    }
    mixed = !between.empty() && !inside.empty() && !sends_in_turn(plan) && shares_links_inside(plan, cluster);
  }

  std::vector<const Op*> between;  ///< collectives over several nodes
  bool mixed = false;              ///< what goes on inside nodes shares links with what goes on between them
};

/// Why the collectives of an op make nodes differ when nothing else is sent.
std::string op_differs(const Plan& plan, const Op& op, const Cluster& cluster) {
  const Grouping& grouping = plan.grouping(op.grouping);
  std::set<int> groups;
  for (int rank = 0; rank < plan.node_begin[1]; ++rank) groups.insert(grouping.group_of(rank));
  groups.erase(-1);
  for (const int group : groups)
    if (std::string why = ranks_differ(op.collective().kind(), grouping.ranks(group), plan, cluster); !why.empty())
      return why;
  return {};
}

}  // namespace

bool has_collectives_between_nodes(const Plan& plan) {
  return std::any_of(plan.ops.begin(), plan.ops.end(),
                     [&](const Op& op) { return op.kind() == OpKind::Collective && crosses_nodes(plan, op.grouping); });
}

bool loops_cross_links_twice(const Plan& plan, const Cluster& cluster) {
  if (!has_collectives_between_nodes(plan)) return false;
  const std::vector<Place> ranks = first_node(plan);
  const int node = ranks.front().node;
  const Topology topology(cluster, {node}, gpus_in_use(ranks));
  const auto loops = [&](const Place& one) {
    return std::any_of(ranks.begin(), ranks.end(),
                       [&](const Place& other) { return crosses_twice(topology.network_path(one, other)); });
  };
  return crosses_twice(topology.between_nodes(node, node)) || std::any_of(ranks.begin(), ranks.end(), loops);
}

bool have_token_buckets(const Cluster& cluster) {
  return std::any_of(cluster.links.begin(), cluster.links.end(),
                     [](const auto& named) { return named.second.service.burst.count > 0; });
}

bool slow_links_beside_compute(const Cluster& cluster) {
  return std::any_of(cluster.links.begin(), cluster.links.end(),
                     [](const auto& named) { return named.second.rate_beside_compute < 1.0; });
}

bool collectives_are_alone(const Plan& plan, const Cluster& cluster) {
  const auto is_apart = [](const Op& op) {
    return op.kind() == OpKind::Transfer || (op.kind() == OpKind::Collective && op.grouping != kWholeJob);
  };
  return sends_in_turn(plan) && std::none_of(plan.ops.begin(), plan.ops.end(), is_apart) &&
         !have_token_buckets(cluster) && !slow_links_beside_compute(cluster);
}

std::string traffic_differs(const Plan& plan, const Cluster& cluster, bool equally_fast) {
  const Traffic traffic(plan, cluster);
  if (!equally_fast && !traffic.between.empty() && slow_links_beside_compute(cluster))
    return "nodes of different speed compute, and slow down links, at different times";
  if (traffic.mixed && !equally_fast)
    return "what nodes of different speed do inside shares links with collectives between them";
  std::set<std::pair<GroupingId, CollectiveKind>> seen;
  for (const Op* op : traffic.between) {
    if (!seen.emplace(op->grouping, op->collective().kind()).second) continue;
    if (std::string why = op_differs(plan, *op, cluster); !why.empty()) return why;
  }
  return {};
}

}  // namespace simsync::detail
