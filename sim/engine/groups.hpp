// The groups that are simulated, the ops' instances on them and which waits for which. Private to sim/engine.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/folding.hpp"
#include "sim/plan/countdown.hpp"
#include "sim/plan/plan.hpp"

namespace simsync::detail {

/// An instance of an op in one iteration.
struct Instance {
  OpId op = 0;
  int group = 0;
  int iteration = 0;
  int copy = 0;  ///< of one that is simulated several times (Groups::copies)
};

/// The part of a plan that is replayed: every op on the ranks that are simulated. These ranks are numbered anew,
/// and so are the groups that have any of them. Plan and folding must outlive it.
class Groups {
public:
  /// @throws PlanError when there are more instances than memory can be expected to hold.
  Groups(const Plan& plan, const Folding& folding);
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;

  /// The plan's, of the simulated ranks.
  [[nodiscard]] const std::vector<Grouping>& groupings() const { return groupings_; }
  [[nodiscard]] int count(GroupingId grouping) const { return groupings_[static_cast<std::size_t>(grouping)].count(); }
  /// Simulated ranks of a group, ascending.
  [[nodiscard]] std::span<const int> ranks(GroupingId grouping, int group) const {
    return groupings_[static_cast<std::size_t>(grouping)].ranks(group);
  }
  /// Groups of `to` that share a rank with `group` of `from`, ascending.
  [[nodiscard]] std::span<const int> sharing(GroupingId from, int group, GroupingId to) const {
    return shared_.with(from, group, to);
  }
  /// The group of kEachNode that a node's simulated ranks are.
  [[nodiscard]] int group_of_node(int node) const;
  /// Where each simulated rank runs.
  [[nodiscard]] const std::vector<Place>& places() const { return places_; }
  /// Where a simulated rank runs, and all those that it stands for.
  [[nodiscard]] std::span<const Place> alike(int rank) const {
    const auto i = static_cast<std::size_t>(rank);
    return alike_.empty() ? std::span(places_).subspan(i, 1) : std::span<const Place>(alike_[i]);
  }
  /// Where a group's first rank runs.
  [[nodiscard]] const Place& first_place(GroupingId grouping, int group) const {
    return places_[static_cast<std::size_t>(ranks(grouping, group).front())];
  }
  /// The plan's number of a simulated group.
  [[nodiscard]] int number_in_plan(GroupingId grouping, int group) const;
  /// Nodes that the node of a group stands for; 1 for a group over several nodes.
  [[nodiscard]] int stands_for(GroupingId grouping, int group) const;
  /// How often an instance is simulated: work that servers do for every node, as often as there are nodes.
  [[nodiscard]] int copies(OpId op, int group) const;

  /// Instances of one iteration, without copies.
  [[nodiscard]] std::size_t instances() const { return instances_; }
  /// With copies.
  [[nodiscard]] std::int64_t to_complete() const { return to_complete_; }
  /// Number of an instance, below instances().
  [[nodiscard]] std::size_t number(OpId op, int group) const {
    return first_[static_cast<std::size_t>(op)] + static_cast<std::size_t>(group);
  }
  /// Ops that wait for `op`: After::op is the waiting one.
  [[nodiscard]] const std::vector<After>& releases(OpId op) const { return releases_[static_cast<std::size_t>(op)]; }
  /// Predecessors, by number.
  [[nodiscard]] const Countdown::Waits& waits() const { return waits_; }

private:
  void index_instances();
  void count_waits();

  const Plan& plan_;
  const Folding& folding_;
  std::vector<int> kept_;  ///< simulated rank -> rank of the plan
  std::vector<Place> places_;
  std::vector<std::vector<Place>> alike_;  ///< by simulated rank; empty: each stands for itself
  std::vector<int> nodes_;                 ///< group of kEachNode -> node
  std::vector<int> stands_for_;            ///< the same -> nodes that it stands for
  std::vector<Grouping> groupings_;
  SharedRanks shared_;
  std::vector<std::size_t> first_;  ///< op -> number of its first instance
  std::size_t instances_ = 0;
  std::int64_t to_complete_ = 0;
  std::vector<std::vector<After>> releases_;
  Countdown::Waits waits_;
};

}  // namespace simsync::detail
