// Whether one node of a collective may stand for all. Private to sim.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "platforms/cluster.hpp"
#include "platforms/topology.hpp"
#include "sim/plan/collectives.hpp"
#include "sim/plan/plan.hpp"

namespace simsync::detail {

/// Whether one of some paths crosses a link that one of the others crosses, too.
bool share_links(const std::vector<Path>& some, const std::vector<Path>& others);

/// Whether a group has ranks on several nodes.
bool crosses_nodes(const Plan& plan, GroupingId grouping);

/// Why the nodes of a plan are not interchangeable in a collective over all ranks: they share something above them, or
/// differ in their links or their number of ranks. Empty when they are; their devices may differ all the same.
std::string nodes_differ(const Plan& plan, const Cluster& cluster);

/// Why a collective of one group, which has ranks on several of the nodes, makes interchangeable ones differ. Empty
/// when it does not. In a double tree, a node has children in one of the trees only. So they differ where its first and
/// its last rank in the group, which lead it in one tree each, reach the network in different ways, or where what
/// leaves the node competes with what goes on inside.
std::string ranks_differ(const CollectiveKind& kind, std::span<const int> group, const Plan& plan,
                         const Cluster& cluster);

}  // namespace simsync::detail
