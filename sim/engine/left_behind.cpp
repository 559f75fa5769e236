#include "sim/engine/left_behind.hpp"

#include "base/error.hpp"

namespace simsync::detail {
LeftBehind::LeftBehind(const Plan& plan, const Cells& cells) {
  if (plan.global_step < 0) return;
  const std::vector<bool> after = after_step_end(plan);
  counted_by_.assign(plan.ops.size(), -1);
  for (std::size_t id = 0; id < plan.ops.size(); ++id) {
    const auto op = static_cast<OpId>(id);
    for (const After& next : cells.releases(op))
      if (plan.ops[static_cast<std::size_t>(next.op)].spare > 0) counted_by_[id] = next.op;
    if (plan.ops[id].scope == Scope::Job) continue;
    SIMSYNC_ASSERT(plan.ops[id].scope == Scope::Rank);
    ++(after[id] ? after_end_ : until_end_);
    if (after[id] || op == plan.step_end) continue;
    for (const After& next : cells.releases(op)) {
      const auto waiting = static_cast<std::size_t>(next.op);
      if (plan.ops[waiting].scope == Scope::Rank && (next.lag > 0 || after[waiting])) next_.push_back(next);
    }
  }
}

void LeftBehind::count(double bytes, bool late) {
  bytes_ += bytes;
  if (late) late_bytes_ += bytes;
}

}  // namespace simsync::detail
