#include "sim/plan/alike_nodes.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <set>
#include <vector>

#include "sim/plan/collective_maker.hpp"
#include "sim/plan/compile.hpp"
#include "sim/plan/link_map.hpp"

namespace simsync::detail {
namespace {

/// Hops of a double tree that a node has: over the chain of its ranks, and to and from others by its first and its last
/// rank, which lead it in one tree each.
struct TreeHops {
  TreeHops(const Plan& plan, std::span<const int> group, const Cluster& cluster)
      : first(plan.ranks[static_cast<std::size_t>(group.front())]) {
    for (const int rank : group)
      if (const Place& place = plan.ranks[static_cast<std::size_t>(rank)]; place.node == first.node)
        ranks.push_back(place);
    topology.emplace(cluster, std::vector{first.node}, gpus_in_use(ranks));
    std::vector<int> gpus;
    for (const Place& rank : ranks) gpus.push_back(rank.gpu);
    const auto hop = [&](const Place& from, const Place& to) {
      return hop_path(*topology, cluster.collective, CollectiveAlgorithm::DoubleBinaryTree, {from, to, gpus, true})
          .path;
    };
    for (std::size_t i = 0; i + 1 < ranks.size(); ++i) {
      down.push_back(hop(ranks[i], ranks[i + 1]));
      up.push_back(hop(ranks[i + 1], ranks[i]));
    }
    // The route to another node comes back to the representative.
    for (const Place& leader : {ranks.front(), ranks.back()})
      outside.push_back(hop(leader, Place{leader.node + 1, leader.gpu}));
  }

  /// Whether the ranks can take each other's places from the last to the first, and their links with them, so that what
  /// one tree does is what the other does in the mirror.
  [[nodiscard]] bool are_mirrored() const {
    LinkMap mirror(*topology);
    for (std::size_t i = 0; i < down.size(); ++i) {
      const std::size_t other = down.size() - 1 - i;
      if (!mirror.carries(down[i], up[other]) || !mirror.carries(up[i], down[other])) return false;
    }
    return mirror.carries(outside.front(), outside.back());
  }
  /// Whether a hop inside the node shares a link with one that leaves it.
  [[nodiscard]] bool share_links() const {
    return detail::share_links(outside, down) || detail::share_links(outside, up);
  }

  Place first;
  std::vector<Place> ranks;  ///< of the group's first node
  std::optional<Topology> topology;
  std::vector<Path> down;  ///< from each rank of the node to the next
  std::vector<Path> up;
  std::vector<Path> outside;  ///< by the first rank, and by the last
};

/// Why one node may not stand for all in the double tree of a group. Nodes have children in one tree and none in the
/// other.
std::string trees_differ(const Plan& plan, std::span<const int> group, const Cluster& cluster) {
  const TreeHops hops(plan, group, cluster);
  if (!hops.are_mirrored())
    return "the two trees of an all-reduce leave a node by GPUs that reach the network in different ways";
  if (hops.share_links())
    return "in the two trees of an all-reduce hops between nodes share links with hops inside them";
  return {};
}

}  // namespace

bool share_links(const std::vector<Path>& some, const std::vector<Path>& others) {
  std::set<LinkId> links;
  for (const Path& path : some) links.insert(path.links.begin(), path.links.end());
  return std::any_of(others.begin(), others.end(), [&](const Path& path) {
    return std::any_of(path.links.begin(), path.links.end(), [&](LinkId link) { return links.contains(link); });
  });
}

bool crosses_nodes(const Plan& plan, GroupingId grouping) {
  const Grouping& groups = plan.grouping(grouping);
  for (int rank = 1; rank < plan.rank_count(); ++rank) {
    const int group = groups.group_of(rank);
    const int first = group < 0 ? rank : groups.ranks(group).front();
    if (plan.ranks[static_cast<std::size_t>(first)].node != plan.ranks[static_cast<std::size_t>(rank)].node)
      return true;
  }
  return false;
}

std::string nodes_differ(const Plan& plan, const Cluster& cluster) {
  if (cluster.network.nodes_per_leaf > 0) return "nodes share leaf uplinks";
  if (cluster.network.pair_bandwidth) return "a pair of nodes shares a limit";
  const NodeGroup& first = cluster.group_of(plan.nodes.front());
  const int size = plan.node_begin[1] - plan.node_begin[0];
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const NodeGroup& group = cluster.group_of(plan.nodes[i]);
    const bool same_network = group.nic_link == first.nic_link && group.nics == first.nics &&
                              group.nearest_nics == first.nearest_nics && group.gpus == first.gpus &&
                              group.nic_slowdown == first.nic_slowdown && group.gpu_direct == first.gpu_direct &&
                              group.fabric == first.fabric;
    if (!same_network) return "nodes differ in their links";
    if (plan.node_begin[i + 1] - plan.node_begin[i] != size) return "nodes differ in their number of ranks";
  }
  return {};
}

std::string ranks_differ(const CollectiveKind& kind, std::span<const int> group, const Plan& plan,
                         const Cluster& cluster) {
  constexpr const char* kChain = "the ends of a chain differ from its middle";
  if (is_chain(kind.primitive)) return kChain;
  switch (kind.algorithm) {
    case CollectiveAlgorithm::HalvingDoubling:
      if (std::has_single_bit(group.size())) return {};
      return "halving-doubling over a number of ranks that is no power of two makes ranks differ";
    case CollectiveAlgorithm::BroadcastReduce:
      return kChain;
    case CollectiveAlgorithm::DoubleBinaryTree:
      return trees_differ(plan, group, cluster);
    case CollectiveAlgorithm::Ring:
    case CollectiveAlgorithm::Hierarchical:
    case CollectiveAlgorithm::Pairwise:
      return {};
    case CollectiveAlgorithm::Auto:
    case CollectiveAlgorithm::Best:
      break;  // rules for a choice, which is made when a plan is written
  }
  return "it is not known whether the ranks of such a collective are alike";
}

}  // namespace simsync::detail
