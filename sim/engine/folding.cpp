#include "sim/engine/folding.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.hpp"
#include "sim/plan/alike_nodes.hpp"

namespace simsync::detail {
namespace {

/// Empty when folding is exact, else why it is not.
std::string obstacle(const Plan& plan, const Cluster& cluster) {
  if (!plan.servers.empty()) return "parameter servers make nodes differ";
  if (plan.steps_vary()) return "every rank draws how long its steps take";
  if (std::string why = nodes_differ(plan, cluster); !why.empty()) return why;
  for (const Op& op : plan.ops) {
    if (op.grouping > kWholeJob) return "groups of ranks on several nodes make nodes differ";
    const auto* all = std::get_if<Collective>(&op.body);
    if (all == nullptr) continue;
    if (std::string why = ranks_differ(all->algorithm, plan.rank_count()); !why.empty()) return why;
  }
  return {};
}

}  // namespace

Folding choose_folding(const Plan& plan, const Cluster& cluster, Fidelity asked) {
  Folding all{asked == Fidelity::Steps ? Fidelity::Steps : Fidelity::Fluid, {}, std::vector<int>(plan.nodes.size(), 1)};
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) all.nodes.push_back(static_cast<int>(i));
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
    const auto [known, fresh] = seen.try_emplace({group.compute_slowdown, group.device}, folded.nodes.size());
    if (fresh) {
      folded.nodes.push_back(static_cast<int>(i));
      folded.stands_for.push_back(0);
    }
    ++folded.stands_for[known->second];
  }
  return folded;
}

}  // namespace simsync::detail
