// Ranks of a plan that do the same at any time. Private to sim/engine.
#pragma once
#include <functional>
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

/// Orbits of the ranks under permutations that change nothing; empty when there is no such permutation, or one rank of
/// each orbit would not show what all do.
///
/// A permutation changes nothing when
/// - ranks keep their kind of device and their speed,
/// - it maps groups of every grouping onto groups, also those that have queues, and no two instances of an op that take
///   turns in one queue onto each other,
/// - a collective goes between the same places of the group, or is a ring that is turned,
/// - transfers are those of each rank between its device and its host, or of groups that it leaves where they are,
/// - a one-to-one map of links of equal rates carries the route of every hop and transfer to that of its image.
/// Then all ranks of an orbit do the same at any time, because shares of links are unique. What else a plan has (draws,
/// backup workers, devices that slow links down) leaves every rank by itself.
///
/// Tried are shifts of the ranks of every node by one place, and, unless `within_nodes`, those of blocks of consecutive
/// ranks: in a mesh of tensor-parallel ranks, replicas and stages these are the shifts along its axes. One rank of each
/// orbit shows what all do when every group that has one of them has one of each orbit in the group.
/// Cost: O(ranks x groupings + hops) for each shift that is tried, of which there are O(divisors^2).
RankOrbits find_rank_orbits(const Plan& plan, const Cluster& cluster, bool within_nodes);

/// The links that a flow crosses which stands for flows along these routes: of links that take each other's places the
/// first, so often as each of them is crossed.
std::vector<LinkId> links_of_one(const std::vector<std::vector<LinkId>>& routes);

/// Hops of simulated ranks stand for those of all ranks of their orbits, in this group and in others; the other hops of
/// a ring go.
void merge_alike_hops(const RouteContext& context, const ScheduleKey& key, const RankOrbits& orbits,
                      RoutedSchedule& schedule);

}  // namespace simsync::detail
