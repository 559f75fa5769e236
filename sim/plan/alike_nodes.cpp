#include "sim/plan/alike_nodes.hpp"

#include <bit>

#include "sim/plan/collective_maker.hpp"

namespace simsync::detail {

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

std::string ranks_differ(const CollectiveKind& kind, int ranks) {
  if (kind.algorithm == CollectiveAlgorithm::HalvingDoubling && !std::has_single_bit(static_cast<unsigned>(ranks)))
    return "halving-doubling over a number of ranks that is no power of two makes ranks differ";
  if (kind.algorithm == CollectiveAlgorithm::BroadcastReduce || is_chain(kind.primitive))
    return "the ends of a chain differ from its middle";
  return {};
}

}  // namespace simsync::detail
