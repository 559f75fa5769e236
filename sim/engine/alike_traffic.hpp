// Whether nodes differ in what they send and receive. Private to sim.
#pragma once
#include <string>

#include "platforms/cluster.hpp"
#include "sim/plan/plan.hpp"

namespace simsync::detail {

/// Why what one node sends and receives is not what every other does at the same time, so that none may stand for the
/// others; empty when it is. The nodes are alike in their links and groups. A collective over nodes that has the
/// network for itself treats them alike unless ranks_differ(). One that shares links with other traffic does so only
/// where each node has as much of it on its links at any time. Not so where slower nodes start what goes on inside them
/// later, or in a double tree, where a node receives from two others, from one or from none.
std::string traffic_differs(const Plan& plan, const Cluster& cluster, bool equally_fast);

}  // namespace simsync::detail
