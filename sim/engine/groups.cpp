#include "sim/engine/groups.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"

namespace simsync::detail {

namespace {

/// Ranks of the simulated nodes, or the first of each orbit.
std::vector<int> simulated_ranks(const Plan& plan, const Folding& folding) {
  std::vector<int> out;
  for (const auto& orbit : folding.orbits.members) out.push_back(orbit.front());
  if (!out.empty()) return out;
  for (const int node : folding.nodes) {
    const auto ranks = plan.grouping(kEachNode).ranks(node);
    out.insert(out.end(), ranks.begin(), ranks.end());
  }
  return out;
}

}  // namespace

Groups::Groups(const Plan& plan, const Folding& folding)
    : plan_(plan),
      folding_(folding),
      kept_(simulated_ranks(plan, folding)),
      groupings_(among(plan.groupings, kept_)),
      shared_(groupings_) {
  for (const int rank : kept_) places_.push_back(plan.ranks[static_cast<std::size_t>(rank)]);
  for (const auto& orbit : folding.orbits.members) {
    auto& places = alike_.emplace_back();
    for (const int rank : orbit) places.push_back(plan.ranks[static_cast<std::size_t>(rank)]);
  }
  for (int group = 0; group < count(kEachNode); ++group) {
    const int first = kept_[static_cast<std::size_t>(ranks(kEachNode, group).front())];
    const int node = plan.grouping(kEachNode).group_of(first);
    const auto known = std::lower_bound(folding.nodes.begin(), folding.nodes.end(), node) - folding.nodes.begin();
    nodes_.push_back(plan.nodes[static_cast<std::size_t>(node)]);
    stands_for_.push_back(folding.stands_for[static_cast<std::size_t>(known)]);
  }
  index_instances();
  // Some 200 bytes each.
  constexpr std::size_t kMost = 20'000'000;
  if (instances_ > kMost)
    throw PlanError(fmt::format("{} operations in a step of {} ranks: at most {} are simulated", instances_,
                                places_.size(), kMost));
  count_waits();
}

int Groups::group_of_node(int node) const {
  const auto found = std::lower_bound(nodes_.begin(), nodes_.end(), node);
  SIMSYNC_ASSERT(found != nodes_.end() && *found == node);
  return static_cast<int>(found - nodes_.begin());
}

int Groups::number_in_plan(GroupingId grouping, int group) const {
  return plan_.grouping(grouping).group_of(kept_[static_cast<std::size_t>(ranks(grouping, group).front())]);
}

int Groups::stands_for(GroupingId grouping, int group) const {
  if (!folding_.by_node) return 1;
  const auto all = plan_.grouping(grouping).ranks(number_in_plan(grouping, group));
  const Grouping& nodes = plan_.grouping(kEachNode);
  if (nodes.group_of(all.front()) != nodes.group_of(all.back())) return 1;
  return stands_for_[static_cast<std::size_t>(groupings_[kEachNode].group_of(ranks(grouping, group).front()))];
}

int Groups::copies(OpId id, int group) const {
  if (!folding_.by_node) return 1;
  const Op& op = plan_.ops[static_cast<std::size_t>(id)];
  return is_served_in_turn(op) ? stands_for(op.grouping, group) : 1;
}

void Groups::index_instances() {
  releases_.resize(plan_.ops.size());
  for (std::size_t op = 0; op < plan_.ops.size(); ++op) {
    first_.push_back(instances_);
    instances_ += static_cast<std::size_t>(count(plan_.ops[op].grouping));
    for (int group = 0; group < count(plan_.ops[op].grouping); ++group)
      to_complete_ += copies(static_cast<OpId>(op), group);
    for (const After& after : plan_.ops[op].after)
      releases_[static_cast<std::size_t>(after.op)].push_back({static_cast<OpId>(op), after.lag, after.may_miss});
  }
}

void Groups::count_waits() {
  waits_[0].assign(instances_, 0);
  for (std::size_t id = 0; id < plan_.ops.size(); ++id) {
    const Op& op = plan_.ops[id];
    for (int group = 0; group < count(op.grouping); ++group) {
      for (const After& after : op.after) {
        const auto before = sharing(op.grouping, group, plan_.ops[static_cast<std::size_t>(after.op)].grouping);
        auto& waits = waits_[after.lag];
        waits.resize(instances_, 0);
        std::int32_t all = 0;
        for (const int waited : before) all += copies(after.op, waited);
        waits[number(static_cast<OpId>(id), group)] += all - after.may_miss;
      }
    }
  }
}

}  // namespace simsync::detail
