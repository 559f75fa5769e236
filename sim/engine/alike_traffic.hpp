// Whether collectives share links with anything else, and whether nodes differ in what they send and receive. Private
// to sim.
#pragma once
#include <string>

#include "platforms/cluster.hpp"
#include "sim/plan/plan.hpp"

namespace simsync::detail {

/// Whether each collective of a plan has the network for itself, so that what it takes is known without simulating its
/// hops (CollectiveAlone): all that is sent is collectives over all ranks, one after another, on links without token
/// buckets that compute does not slow down.
bool collectives_are_alone(const Plan& plan, const Cluster& cluster);

/// Why what one node sends and receives is not what every other does, so that none may stand for the others; empty when
/// it is. The nodes are alike in their links and groups. A collective over nodes that has the network for itself treats
/// them alike unless ranks_differ(). Where compute speeds differ, what goes on inside a slow node comes later; if that
/// shares links with a collective over nodes, rates differ from node to node.
///
/// Not looked at: in a double tree a node receives from two others, from one or from none, so that transfers beside it
/// may end earlier on some nodes than on the busiest, which stands for all. Of 50,623 random plans with a tree beside
/// other traffic 44 took another step by that, 1.7 % shorter at most (groups_test draws such plans).
std::string traffic_differs(const Plan& plan, const Cluster& cluster, bool equally_fast);

}  // namespace simsync::detail
