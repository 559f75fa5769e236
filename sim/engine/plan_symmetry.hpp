// Which permutations of the ranks leave a plan and the network as they are. Private to sim/engine.
#pragma once
#include <memory>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "platforms/topology.hpp"
#include "sim/plan/link_map.hpp"
#include "sim/plan/plan.hpp"

namespace simsync::detail {

using Permutation = std::vector<int>;  ///< by rank: the one whose place it takes

/// Plan and cluster must outlive it.
class PlanSymmetry {
public:
  PlanSymmetry(const Plan& plan, const Cluster& cluster);

  /// False: whatever the permutation, something tells every rank from all others. They draw how long steps take, a
  /// server answers them one after another, or compute slows down links (Topology::links_beside_compute).
  [[nodiscard]] bool is_possible();

  /// Whether nothing changes when ranks take each other's places:
  /// - each keeps its kind of device and its speed,
  /// - groups of every grouping become groups, those of queues as well, and no two instances of an op that take turns
  ///   in one queue become each other,
  /// - a collective goes between the same places of a group, or is a ring that is rotated,
  /// - transfers are those of each rank between its device and its host, or of groups that stay where they are,
  /// - links of equal rates can take each other's places so that every route becomes that of the ranks whose place is
  ///   taken.
  /// Cost: O(ranks x groupings + hops).
  [[nodiscard]] bool is_kept_by(const Permutation& to);

  /// Whether the first rank of each orbit shows what all do: every group that has one of them has one of each orbit in
  /// the group, and those of a ring are a stretch of it that is repeated. `orbit_of`: by rank; `orbits`: ranks by
  /// orbit.
  [[nodiscard]] bool is_shown_by_first(const std::vector<int>& orbit_of,
                                       const std::vector<std::vector<int>>& orbits) const;

private:
  /// An op that takes turns with others.
  struct Turn {
    GroupingId of_queue = 0;
    GroupingId of_op = 0;
    bool at_fixed_place = false;  ///< in the queue of the node there, whichever group's instance it is
    friend auto operator<=>(const Turn&, const Turn&) = default;
  };

  Topology& topology();
  [[nodiscard]] bool keeps_devices(const Permutation& to) const;
  [[nodiscard]] bool keeps_turns(const Permutation& to) const;
  [[nodiscard]] bool keeps_places(const Op& op, const Permutation& to) const;
  [[nodiscard]] bool keeps_routes(const Permutation& to);
  /// Of each rank: the route of the rank whose place it takes. Of a group that stays where it is: the links that its
  /// route has, so that no other op moves them.
  [[nodiscard]] bool keeps_transfer(const Op& op, const Permutation& to, LinkMap& map) const;
  [[nodiscard]] bool keeps_collective(const Op& op, const Permutation& to, LinkMap& map) const;
  [[nodiscard]] Path route_of(const Transfer& moved, int rank) const;

  const Plan& plan_;
  const Cluster& cluster_;
  std::set<GroupingId> groupings_;  ///< of ops and queues
  std::set<GroupingId> rings_;      ///< groupings that have rings
  std::set<Turn> in_turn_;
  std::vector<const Op*> routed_;       ///< one of each kind of those that cross links
  std::unique_ptr<Topology> topology_;  ///< once it is needed
};

}  // namespace simsync::detail
