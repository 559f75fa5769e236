// The cells that are simulated, the ops' instances on them and which waits for which. Private to sim/engine.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/engine/folding.hpp"
#include "sim/plan/plan.hpp"

namespace simsync::detail {

/// An instance of an op in one iteration.
struct Instance {
  OpId op = 0;
  int cell = 0;
  int iteration = 0;
};

/// The part of a plan that is replayed: every op on the ranks of the simulated nodes. `plan` must outlive it.
class Cells {
public:
  /// @throws PlanError when there are more instances than memory can be expected to hold.
  Cells(const Plan& plan, const Folding& folding);

  /// How many cells of a scope are simulated.
  [[nodiscard]] int count(Scope scope) const;
  /// Cells of scope `to` that share a rank with `cell` of scope `from`: the first, and one past the last.
  [[nodiscard]] std::pair<int, int> related(Scope from, int cell, Scope to) const;
  /// Number of the cell of a node with simulated ranks.
  [[nodiscard]] int node(int node) const;
  /// Where each simulated rank runs, ascending.
  [[nodiscard]] const std::vector<Place>& ranks() const { return ranks_; }

  /// Instances of one iteration.
  [[nodiscard]] std::size_t instances() const { return instances_; }
  /// Number of an instance, below instances().
  [[nodiscard]] std::size_t number(OpId op, int cell) const {
    return first_[static_cast<std::size_t>(op)] + static_cast<std::size_t>(cell);
  }
  /// Ops that wait for `op`: After::op is the waiting one.
  [[nodiscard]] const std::vector<After>& releases(OpId op) const { return releases_[static_cast<std::size_t>(op)]; }
  /// By number: predecessors needed in iteration `k` and all before it, as far as these exist.
  [[nodiscard]] std::vector<std::int32_t> waits_in(int k) const;
  /// By number: predecessors in the same iteration.
  [[nodiscard]] const std::vector<std::int32_t>& waits_now() const { return waits_.at(0); }

private:
  void index_instances(const Plan& plan);
  void count_waits(const Plan& plan);

  std::vector<Place> ranks_;
  std::vector<int> node_begin_;     ///< simulated node -> its first simulated rank; one more entry
  std::vector<int> node_of_;        ///< simulated rank -> simulated node
  std::vector<std::size_t> first_;  ///< op -> number of its first instance
  std::size_t instances_ = 0;
  std::vector<std::vector<After>> releases_;
  std::map<int, std::vector<std::int32_t>> waits_;  ///< by lag, then by number
};

}  // namespace simsync::detail
