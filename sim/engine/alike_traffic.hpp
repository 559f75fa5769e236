// Whether collectives share links with anything else, whether nodes differ in what they send and receive, and which
// links tell nodes apart. Private to sim.
#pragma once
#include <string>

#include "platforms/cluster.hpp"
#include "sim/plan/plan.hpp"

namespace simsync::detail {

/// Whether some group of ranks on several nodes has a collective.
bool has_collectives_between_nodes(const Plan& plan);

/// Whether what leaves a node in a collective crosses a link of its own again when it comes back into it, as it does
/// where the node stands for others: a half-duplex link, or the memory of the host.
bool loops_cross_links_twice(const Plan& plan, const Cluster& cluster);

/// Whether links have token buckets. How full one is depends on when its node pauses, not only on what it sends.
bool have_token_buckets(const Cluster& cluster);

/// Whether computing GPUs slow down links (LinkClass::rate_beside_compute).
bool slow_links_beside_compute(const Cluster& cluster);

/// Whether each collective of a plan has the network for itself, so that what it takes is known without simulating its
/// hops (CollectiveAlone): all that is sent is collectives over all ranks, one after another, on links without token
/// buckets that compute does not slow down.
bool collectives_are_alone(const Plan& plan, const Cluster& cluster);

/// Why what one node sends and receives is not what every other does, so that none may stand for the others; empty when
/// it is. The nodes are alike in their links and groups. A collective over nodes that has the network for itself treats
/// them alike unless ranks_differ(). Where compute speeds differ, what goes on inside a slow node comes later; if that
/// shares links with a collective over nodes, or computing slows down links, rates differ from node to node.
///
/// Not looked at: in a double tree a node receives from two others, from one or from none, so that transfers beside it
/// may end earlier on some nodes than on the busiest, which stands for all. Of 50,623 random plans with a tree beside
/// other traffic 44 took another step by that, 1.7 % shorter at most (groups_test draws such plans).
std::string traffic_differs(const Plan& plan, const Cluster& cluster, bool equally_fast);

}  // namespace simsync::detail
