// Which nodes have to be simulated. Private to sim/engine.
#pragma once
#include <string>
#include <vector>

#include "platforms/cluster.hpp"
#include "sim/engine/engine.hpp"
#include "sim/plan/plan.hpp"

namespace simsync::detail {

/// Nodes to simulate, as groups of kEachNode, ascending. All of them unless folded.
struct Folding {
  Fidelity fidelity = Fidelity::Fluid;
  std::vector<int> nodes;
  std::vector<int> stands_for;  ///< by simulated node: nodes that it represents
  [[nodiscard]] bool folded() const { return fidelity == Fidelity::Folded; }
};

/// Nodes are interchangeable when they have the same hardware, the same number of ranks and the same speed, and when
/// every transfer of the plan stays inside a node or is part of a collective over groups that look alike from every
/// node: each group has the same ranks on all of its nodes, counted from the node's first, and every node has groups of
/// the same ranks and sizes. One of each class is simulated; what leaves it comes back into it, because the node before
/// it does as it does. That needs every node to have the same network (compute speeds may differ, if each group is
/// inside a node or over all) and no shared uplink above the nodes.
/// @throws PlanError when `asked` is Folded and that does not hold.
Folding choose_folding(const Plan& plan, const Cluster& cluster, Fidelity asked);

}  // namespace simsync::detail
