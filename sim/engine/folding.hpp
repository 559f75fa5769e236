// Which nodes have to be simulated. Private to sim/engine.
#pragma once
#include <string>
#include <vector>

#include "platforms/cluster.hpp"
#include "sim/engine/engine.hpp"
#include "sim/engine/rank_orbits.hpp"
#include "sim/plan/plan.hpp"

namespace simsync::detail {

/// Nodes to simulate, as groups of kEachNode, ascending. All of them, with all of their ranks, unless folded.
struct Folding {
  Fidelity fidelity = Fidelity::Fluid;
  std::vector<int> nodes;
  std::vector<int> stands_for;     ///< by simulated node: nodes that it represents
  bool by_node = false;            ///< one node of every class is simulated
  bool collectives_alone = false;  ///< their hops are not simulated (collectives_are_alone)
  RankOrbits orbits;               ///< of ranks of simulated nodes that stand for each other; none: each is simulated
};

/// Work of groups at a fixed place, for whose threads they wait there: it is simulated for every group, also where one
/// stands for others.
bool is_served_in_turn(const Op& op);

/// Nodes are interchangeable when they have the same hardware, the same number of ranks and the same speed, and when
/// every transfer of the plan stays inside a node, is part of a collective over groups that look alike from every
/// node, or has a server at its other end. Groups look alike when each has the same ranks on all of its nodes, counted
/// from the node's first, and every node has groups of the same ranks and sizes. One node of each class is simulated.
/// That needs every node to have the same network and no shared uplink above the nodes.
///
/// - Of a collective, what leaves a node comes back into it, because the node before it does as it does. Compute speeds
///   may differ if each group is inside a node or over all, and what goes on inside nodes shares no link with what goes
///   on between them. The two trees of an all-reduce share no link with other transfers (alike_traffic.hpp).
/// - Nodes with servers stand for themselves. A transfer between a server and a node that stands for m counts m times
///   on the server's links (Routes), and its work on the server's threads is done m times (Groups::copies). So
///   collectives do not leave nodes, ports keep no queues, and who waits for work in turn on a server's threads is the
///   whole job, which waits for all of it. SimGrid's flows load each link of their route once, so that only the native
///   solver can count them m times.
///
/// Where nodes do not stand for each other, ranks may (find_rank_orbits): those of a node, and those of a mesh along
/// its axes. Where nodes do, so may the ranks of a node, if no collective leaves it. One rank of each orbit is
/// simulated, and what it moves counts on links that several of them share as often as they cross it: the native solver
/// again. A replay that is recorded simulates all of them.
///
/// Where every collective has the network for itself (collectives_are_alone), the native solver does not simulate its
/// hops, so that links, trees and places in a node tell no rank from another: if ranks meet in collectives only, one of
/// each speed and device is simulated. Not in replays that are recorded.
/// @throws PlanError when `options.fidelity` is Folded and none of this holds.
Folding choose_folding(const Plan& plan, const Cluster& cluster, const ReplayOptions& options);

}  // namespace simsync::detail
