#include "sim/timeline/instance_filter.hpp"

#include <algorithm>
#include <utility>

namespace simsync {

InstanceFilter::InstanceFilter(const Plan& plan, const SimulatedCells& cells, const std::vector<Place>& ranks)
    : all_(ranks.empty()), places_(ranks.begin(), ranks.end()) {
  if (all_) return;
  std::set<int> of_ranks;
  for (const Place& rank : ranks) of_ranks.insert(rank.node);
  for (const Place& rank : cells.ranks) rank_cells_.push_back(places_.contains(rank));
  for (const int node : cells.nodes) node_cells_.push_back(of_ranks.contains(node));
  nodes_ = std::move(of_ranks);
  for (const Place& server : plan.servers) nodes_.insert(server.node);
}

bool InstanceFilter::keeps(const Op& op, int cell) const {
  if (all_ || op.scope == Scope::Job) return true;
  if (op.kind == OpKind::HostWork && op.from.kind == End::Kind::Fixed) return true;
  const auto& kept = op.scope == Scope::Rank ? rank_cells_ : node_cells_;
  return kept[static_cast<std::size_t>(cell)];
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
