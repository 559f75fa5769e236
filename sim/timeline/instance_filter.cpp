#include "sim/timeline/instance_filter.hpp"

#include <algorithm>
#include <utility>

namespace simsync {

InstanceFilter::InstanceFilter(const Plan& plan, const SimulatedRanks& simulated, const std::vector<Place>& ranks)
    : all_(ranks.empty()), places_(ranks.begin(), ranks.end()) {
  if (all_) return;
  std::set<int> of_ranks;
  for (const Place& rank : ranks) of_ranks.insert(rank.node);
  for (const Grouping& grouping : simulated.groupings) {
    std::vector<bool>& kept = kept_.emplace_back(static_cast<std::size_t>(grouping.count()), false);
    for (std::size_t rank = 0; rank < simulated.ranks.size(); ++rank) {
      const int group = grouping.group_of(static_cast<int>(rank));
      if (group >= 0 && places_.contains(simulated.ranks[rank])) kept[static_cast<std::size_t>(group)] = true;
    }
  }
  nodes_ = std::move(of_ranks);
  for (const Place& server : plan.servers) nodes_.insert(server.node);
}

bool InstanceFilter::keeps(const Op& op, int group) const {
  if (all_ || op.grouping == kWholeJob) return true;
  if (const auto* work = std::get_if<HostWork>(&op.body); work != nullptr && work->at.is_fixed())
    return true;
  return kept_[static_cast<std::size_t>(op.grouping)][static_cast<std::size_t>(group)];
}

std::vector<Place> representative_ranks(const Plan& plan, const Cluster& cluster) {
  std::set<std::pair<const NodeGroup*, int>> seen;
  std::vector<Place> out;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const int ranks = plan.node_begin[i + 1] - plan.node_begin[i];
    if (!seen.insert({&cluster.group_of(plan.nodes[i]), ranks}).second) continue;
    out.push_back(plan.ranks[static_cast<std::size_t>(plan.node_begin[i])]);
  }
  return out;
}

}  // namespace simsync
