// Trials of a search: who runs them, and the table that they are written to.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/progress_bar.hpp"
#include "cli/row_file.hpp"
#include "strategies/evaluator.hpp"
#include "strategies/search/trial_table.hpp"

namespace simsync {

/// Runs strategies and tells `done` of each, in their order and as soon as it is known: its index and its step, or
/// nothing where it cannot run. It may end before the last one when it is stopped.
using StrategyRunner = std::function<void(const std::vector<Strategy>& strategies,
                                          const std::function<void(std::size_t, std::optional<Seconds>)>& done)>;

/// In `jobs` worker processes, which end at once when `stop` says true.
/// `evaluator` must outlive it.
StrategyRunner run_simulated(Evaluator& evaluator, int jobs, const std::function<bool()>& stop);

/// What all trials of a table have in common. Model and cluster of the target must outlive it.
struct TrialSetting {
  SearchTarget target;
  std::int64_t samples = 1;  ///< of a worker in a step
  std::string evaluator;     ///< as the table names it
  TrialBasis basis;
};

/// Takes the trials that a table of an earlier, killed search has, runs the others and adds a row for each.
class TrialLog {
public:
  /// `file` may be null. Both must outlive it.
  TrialLog(TrialSetting setting, RowFile* file, ProgressBar& progress)
      : setting_(std::move(setting)), file_(file), progress_(progress) {}

  /// Steps in the order of the candidates, as RunTrials wants them; none of those that a stopped runner leaves.
  /// @throws InputError when the table has another
  /// strategy where one of these belongs.
  std::vector<std::optional<Seconds>> run(const std::vector<Candidate>& candidates, int first, int round,
                                          const StrategyRunner& runner);

private:
  [[nodiscard]] bool has_row(std::size_t row) const { return file_ != nullptr && row < file_->found().size(); }
  [[nodiscard]] std::optional<Seconds> found(const Candidate& candidate, std::size_t row) const;
  void note(const Candidate& candidate, const std::optional<Seconds>& step);

  TrialSetting setting_;
  RowFile* file_;
  ProgressBar& progress_;
  std::size_t count_ = 0;
  std::optional<Seconds> best_;
  std::string best_origin_;
};

}  // namespace simsync
