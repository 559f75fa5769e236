#include "sim/engine/folding.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.hpp"

namespace simsync::detail {
namespace {

/// Empty when folding is exact, else why it is not.
std::string obstacle(const Plan& plan, const Cluster& cluster) {
  if (!plan.servers.empty()) return "parameter servers make nodes differ";
  if (plan.steps_vary()) return "every rank draws how long its steps take";
  if (cluster.network.nodes_per_leaf > 0) return "nodes share leaf uplinks";
  if (cluster.network.pair_bandwidth) return "a pair of nodes shares a limit";
  const NodeGroup& first = cluster.group_of(plan.nodes.front());
  const int size = plan.node_begin[1] - plan.node_begin[0];
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const NodeGroup& group = cluster.group_of(plan.nodes[i]);
    const bool same_network = group.nic_link == first.nic_link && group.nics == first.nics &&
                              group.nearest_nics == first.nearest_nics && group.nic_slowdown == first.nic_slowdown &&
                              group.gpu_direct == first.gpu_direct && group.fabric == first.fabric;
    if (!same_network) return "nodes differ in their links";
    if (plan.node_begin[i + 1] - plan.node_begin[i] != size) return "nodes differ in their number of ranks";
  }
  for (const Op& op : plan.ops) {
    if (op.kind == OpKind::Collective && op.algorithm == CollectiveAlgorithm::HalvingDoubling &&
        (plan.rank_count() & (plan.rank_count() - 1)) != 0)
      return "halving-doubling over a number of ranks that is no power of two makes ranks differ";
    if (op.kind == OpKind::Collective && op.algorithm == CollectiveAlgorithm::BroadcastReduce)
      return "the ends of a chain differ from its middle";
  }
  return {};
}

}  // namespace

Folding choose_folding(const Plan& plan, const Cluster& cluster, Fidelity asked) {
  Folding all{asked == Fidelity::Steps ? Fidelity::Steps : Fidelity::Fluid, {}, std::vector<int>(plan.nodes.size(), 1)};
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) all.cells.push_back(static_cast<int>(i));
  if (asked == Fidelity::Steps || asked == Fidelity::Fluid) return all;
  // Two nodes are as cheap as one, and a group of two has no symmetry to lose.
  const std::string why_not = plan.nodes.size() <= 2 ? "there are at most two nodes" : obstacle(plan, cluster);
  if (!why_not.empty()) {
    if (asked == Fidelity::Folded) throw PlanError("fidelity 'folded' is not exact here: " + why_not);
    return all;
  }
  Folding folded{Fidelity::Folded, {}, {}};
  std::map<std::tuple<double, std::string>, std::size_t> seen;  // speed and device -> representative
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const NodeGroup& group = cluster.group_of(plan.nodes[i]);
    const auto [known, fresh] = seen.try_emplace({group.compute_slowdown, group.device}, folded.cells.size());
    if (fresh) {
      folded.cells.push_back(static_cast<int>(i));
      folded.stands_for.push_back(0);
    }
    ++folded.stands_for[known->second];
  }
  return folded;
}

}  // namespace simsync::detail
