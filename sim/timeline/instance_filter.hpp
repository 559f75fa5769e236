// Which instances of ops are recorded or drawn, where not all ranks are.
#pragma once
#include <set>
#include <vector>

#include "sim/plan/plan.hpp"

namespace simsync {

/// What a replay simulated, as in Prediction.
struct SimulatedRanks {
  const std::vector<Place>& ranks;
  const std::vector<Grouping>& groupings;
};

/// Keeps what chosen ranks, their nodes and the whole job do, and the work of every server.
class InstanceFilter {
public:
  /// Keeps everything.
  InstanceFilter() = default;
  /// `ranks`: those chosen; none: keeps everything.
  InstanceFilter(const Plan& plan, const SimulatedRanks& simulated, const std::vector<Place>& ranks);

  [[nodiscard]] bool keeps_all() const { return all_; }
  [[nodiscard]] bool keeps(const Op& op, int group) const;
  /// A GPU of a chosen rank.
  [[nodiscard]] bool keeps(const Place& gpu) const { return all_ || places_.contains(gpu); }
  /// A node of a chosen rank or of a server.
  [[nodiscard]] bool keeps_node(int node) const { return all_ || nodes_.contains(node); }

private:
  bool all_ = true;
  std::set<Place> places_;
  std::set<int> nodes_;
  std::vector<std::vector<bool>> kept_;  ///< by grouping and group
};

/// One rank for each kind of node that has ranks (its group in the cluster, how many ranks it has): the first.
std::vector<Place> representative_ranks(const Plan& plan, const Cluster& cluster);

}  // namespace simsync
