#include "sim/engine/cells.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"

namespace simsync::detail {

Cells::Cells(const Plan& plan, const Folding& folding) {
  for (const int cell : folding.cells) {
    const auto [begin, end] = plan.cell_ranks(Scope::Node, cell);
    node_begin_.push_back(static_cast<int>(ranks_.size()));
    for (int rank = begin; rank < end; ++rank) {
      node_of_.push_back(static_cast<int>(node_begin_.size()) - 1);
      ranks_.push_back(plan.ranks[static_cast<std::size_t>(rank)]);
    }
  }
  node_begin_.push_back(static_cast<int>(ranks_.size()));
  index_instances(plan);
  // Some 200 bytes each.
  constexpr std::size_t kMost = 20'000'000;
  if (instances_ > kMost)
    throw PlanError(
        fmt::format("{} operations in a step of {} ranks: at most {} are simulated", instances_, ranks_.size(), kMost));
  count_waits(plan);
}

int Cells::count(Scope scope) const {
  switch (scope) {
    case Scope::Rank:
      return static_cast<int>(ranks_.size());
    case Scope::Node:
      return static_cast<int>(node_begin_.size()) - 1;
    case Scope::Job:
      return 1;
  }
  return 0;
}

std::pair<int, int> Cells::related(Scope from, int cell, Scope to) const {
  if (from == to) return {cell, cell + 1};
  if (from == Scope::Job) return {0, count(to)};
  if (to == Scope::Job) return {0, 1};
  const auto i = static_cast<std::size_t>(cell);
  if (from == Scope::Rank) return {node_of_[i], node_of_[i] + 1};
  return {node_begin_[i], node_begin_[i + 1]};
}

int Cells::node(int node) const {
  const auto after = std::partition_point(node_begin_.begin(), node_begin_.end() - 1, [&](int first) {
    return ranks_[static_cast<std::size_t>(first)].node <= node;
  });
  SIMSYNC_ASSERT(after != node_begin_.begin());
  const auto cell = static_cast<int>(after - node_begin_.begin()) - 1;
  SIMSYNC_ASSERT(ranks_[static_cast<std::size_t>(node_begin_[static_cast<std::size_t>(cell)])].node == node);
  return cell;
}

void Cells::index_instances(const Plan& plan) {
  releases_.resize(plan.ops.size());
  for (std::size_t op = 0; op < plan.ops.size(); ++op) {
    first_.push_back(instances_);
    instances_ += static_cast<std::size_t>(count(plan.ops[op].scope));
    for (const After& after : plan.ops[op].after)
      releases_[static_cast<std::size_t>(after.op)].push_back({static_cast<OpId>(op), after.lag});
  }
}

void Cells::count_waits(const Plan& plan) {
  waits_[0].assign(instances_, 0);
  for (std::size_t id = 0; id < plan.ops.size(); ++id) {
    const Op& op = plan.ops[id];
    for (int cell = 0; cell < count(op.scope); ++cell) {
      for (const After& after : op.after) {
        const auto [begin, end] = related(op.scope, cell, plan.ops[static_cast<std::size_t>(after.op)].scope);
        auto& waits = waits_[after.lag];
        waits.resize(instances_, 0);
        waits[number(static_cast<OpId>(id), cell)] += end - begin;
      }
      waits_[0][number(static_cast<OpId>(id), cell)] -= op.spare;
    }
  }
}

std::vector<std::int32_t> Cells::waits_in(int k) const {
  std::vector<std::int32_t> out = waits_now();
  for (const auto& [lag, waits] : waits_) {
    if (lag == 0 || lag > k) continue;
    for (std::size_t i = 0; i < instances_; ++i) out[i] += waits[i];
  }
  return out;
}

}  // namespace simsync::detail
