// Ranks of a plan that do the same at any time. Private to sim/engine.
#pragma once
#include <vector>

#include "platforms/topology.hpp"
#include "sim/plan/plan.hpp"
#include "sim/plan/routed_collective.hpp"

namespace simsync::detail {

/// Sets of ranks, of each of which one rank may stand for all.
struct RankOrbits {
  std::vector<std::vector<int>> members;  ///< ranks by orbit, ascending; the first one is simulated
  std::vector<int> orbit_of;              ///< by rank; -1: neither simulated nor stood for

  [[nodiscard]] bool empty() const { return members.empty(); }
};

/// Orbits of the ranks under permutations that leave plan and network as they are (PlanSymmetry); empty when there is
/// none. Permutations after which the first rank of an orbit would not show what all do are left out. Ranks of an orbit
/// do the same at any time, because shares of links are unique; where instances of several ops begin to wait for one
/// queue at the same instant, the one that is served first may be another than in the whole plan.
///
/// Tried are shifts of the ranks of every node by one place, and, unless `within_nodes`, those of blocks of consecutive
/// ranks: in a mesh of tensor-parallel ranks, replicas and stages these are the shifts along its axes.
/// Cost: PlanSymmetry::is_kept_by for each shift, of which there are O(divisors of the number of ranks, squared), and
/// is_shown_by_first for each that joins orbits.
RankOrbits find_rank_orbits(const Plan& plan, const Cluster& cluster, bool within_nodes);

/// The links that a flow crosses which stands for flows along these routes, of equal lengths: of links that take each
/// other's places the first, so often as each of them is crossed.
std::vector<LinkId> links_of_one(const std::vector<std::vector<LinkId>>& routes);

/// Hops of simulated ranks stand for those of all ranks of their orbits, in this group and in others; the other hops of
/// a ring go.
void merge_alike_hops(const RouteContext& context, const ScheduleKey& key, const RankOrbits& orbits,
                      RoutedSchedule& schedule);

}  // namespace simsync::detail
