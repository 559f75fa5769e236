// Ranks that come too late for a step that does without them (ProgressPolicy::backups). Private to sim/engine.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/engine/groups.hpp"
#include "sim/plan/plan.hpp"

namespace simsync::detail {

/// What a rank leaves out that goes on with the newest step, and how much came too late. Empty for other plans.
class BackupWorkers {
public:
  BackupWorkers(const Plan& plan, const Groups& groups);

  /// Of so many steps the first ones, which do not count.
  static constexpr std::size_t warm_up(std::size_t steps) { return steps / 5; }

  /// ProgressPolicy::global_step has ended once more.
  void step_ended() { ++steps_; }
  /// The newest iteration whose step has ended.
  [[nodiscard]] int newest() const { return steps_ - 1; }

  /// The op that begins when so many instances of `op` are there that the others come too late; -1: none.
  [[nodiscard]] OpId counted_by(OpId op) const {
    return counted_by_.empty() ? -1 : counted_by_[static_cast<std::size_t>(op)];
  }

  /// Ops of a rank in an iteration up to the end of its step, after it, or both.
  [[nodiscard]] std::int64_t left_out(bool until_end, bool after_end) const {
    return (until_end ? until_end_ : 0) + (after_end ? after_end_ : 0);
  }
  /// Ops of a rank that wait for those up to the end of its step and come after it, themselves or in later iterations.
  [[nodiscard]] const std::vector<After>& next_of_left_out() const { return next_; }

  void count(double bytes, bool late);
  /// Share of the counted bytes that was late.
  [[nodiscard]] double dropped() const { return bytes_ > 0.0 ? late_bytes_ / bytes_ : 0.0; }

private:
  int steps_ = 0;
  std::vector<OpId> counted_by_;
  std::int64_t until_end_ = 0;
  std::int64_t after_end_ = 0;
  std::vector<After> next_;
  double bytes_ = 0.0;
  double late_bytes_ = 0.0;
};

}  // namespace simsync::detail
