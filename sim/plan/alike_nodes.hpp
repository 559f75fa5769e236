// Whether one node of a collective may stand for all. Private to sim.
#pragma once
#include <string>

#include "platforms/cluster.hpp"
#include "sim/plan/collectives.hpp"
#include "sim/plan/plan.hpp"

namespace simsync::detail {

/// Why the nodes of a plan are not interchangeable in a collective over all ranks: they share something above them, or
/// differ in their links or their number of ranks. Empty when they are; their devices may differ all the same.
std::string nodes_differ(const Plan& plan, const Cluster& cluster);

/// Why a collective over several nodes makes interchangeable ones differ. Empty when it does not.
std::string ranks_differ(const CollectiveKind& kind, int ranks);

}  // namespace simsync::detail
