// Whether the ranks of a node are interchangeable, and what one that stands for all of them moves. Private to
// sim/engine.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "platforms/topology.hpp"
#include "sim/plan/plan.hpp"
#include "sim/plan/routed_collective.hpp"

namespace simsync::detail {

/// Empty when the first rank of every node can stand for all ranks of that node, else why it cannot.
///
/// Shift the ranks of a node by one place: the first becomes the second, the last the first. Nothing of the plan
/// changes when every op is one of
/// - compute of each rank,
/// - a transfer of each rank between its own device and its host,
/// - a ring among all ranks of a node,
/// - a transfer or a work of whole nodes, or of the job, that concerns no device.
/// Nothing of the network changes when the routes of these transfers and rings cross, at every place, links that the
/// shift carries into each other, all of one rate, or that it leaves where they are. Then all ranks of a node do the
/// same at any time, because shares of links are unique. Cost: O(ops + ranks of a node x links of a route).
std::string ranks_of_nodes_differ(const Plan& plan, const Cluster& cluster);

/// The links that a flow crosses which stands for flows along these routes, one of each rank: of links that the shift
/// carries into each other the first, so often as each of them is crossed.
std::vector<LinkId> links_of_one(const std::vector<std::vector<LinkId>>& routes);

/// A ring within a node whose hops do the same at any time, as one hop that stands for all; others stay as they are.
void merge_alike_hops(RoutedSchedule& schedule,
                      const std::function<int(const std::vector<LinkId>&, BytesPerSecond)>& path_of);

}  // namespace simsync::detail
