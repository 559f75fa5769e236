#include "sim/engine/backup_workers.hpp"

#include "base/error.hpp"

namespace simsync::detail {
BackupWorkers::BackupWorkers(const Plan& plan, const Groups& groups) {
  if (plan.progress.global_step < 0) return;
  const std::vector<bool> after = after_step_end(plan);
  counted_by_.assign(plan.ops.size(), -1);
  for (std::size_t id = 0; id < plan.ops.size(); ++id) {
    const auto op = static_cast<OpId>(id);
    for (const After& next : groups.releases(op))
      if (next.may_miss > 0) counted_by_[id] = next.op;
    if (plan.ops[id].grouping == kWholeJob) continue;
    SIMSYNC_ASSERT(plan.ops[id].grouping == kEachRank);
    ++(after[id] ? after_end_ : until_end_);
    if (after[id] || op == plan.progress.step_end) continue;
    for (const After& next : groups.releases(op)) {
      const auto waiting = static_cast<std::size_t>(next.op);
      if (plan.ops[waiting].grouping == kEachRank && (next.lag > 0 || after[waiting])) next_.push_back(next);
    }
  }
}

void BackupWorkers::count(double bytes, bool late) {
  bytes_ += bytes;
  if (late) late_bytes_ += bytes;
}

}  // namespace simsync::detail
