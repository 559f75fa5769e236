#include "cli/trials.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/parse_units.hpp"
#include "cli/worker_pool.hpp"

namespace simsync {

StrategyRunner run_simulated(Evaluator& evaluator, int jobs, const std::function<bool()>& stop) {
  return [&evaluator, jobs, stop](const std::vector<Strategy>& strategies,
                                  const std::function<void(std::size_t, std::optional<Seconds>)>& done) {
    const auto work = [&](std::size_t i) -> std::string {
      try {
        return fmt::format("{:.17g}", evaluator.evaluate(strategies[i]).step.value());
      } catch (const PlanError&) {
        return " ";  // it cannot run
      }
    };
    run_in_processes(
        strategies.size(), jobs, work,
        [&](std::size_t i, const std::string& text) {
          const auto step = parse_number(text);
          done(i, step ? std::optional(Seconds{*step}) : std::nullopt);
        },
        stop);
  };
}

std::vector<std::optional<Seconds>> TrialLog::run(const std::vector<Candidate>& candidates, int first, int round,
                                                  const StrategyRunner& runner) {
  std::vector<std::optional<Seconds>> out;
  const auto number_of = [&](std::size_t i) { return static_cast<std::size_t>(first) + i; };
  std::size_t known = 0;
  for (; known < candidates.size() && has_row(number_of(known)); ++known) {
    out.push_back(found(candidates[known], number_of(known)));
    note(candidates[known], out.back());
  }
  std::vector<Strategy> left;
  for (std::size_t i = known; i < candidates.size(); ++i) left.push_back(candidates[i].strategy);
  if (left.empty()) return out;
  runner(left, [&](std::size_t i, std::optional<Seconds> step) {
    const std::size_t at = known + i;
    SIMSYNC_ASSERT(at == out.size());
    out.push_back(step);
    if (file_ != nullptr) {
      TrialRow row = trial_row(candidates[at], setting_.target, setting_.samples);
      row.trial = static_cast<int>(number_of(at));
      row.round = round;
      row.step = step;
      row.evaluator = setting_.evaluator;
      row.basis = setting_.basis;
      file_->append(csv_row(trial_cells(row)));
    }
    note(candidates[at], step);
  });
  return out;
}

std::optional<Seconds> TrialLog::found(const Candidate& candidate, std::size_t row) const {
  const CsvTable& table = file_->found();
  if (table.cell(row, "strategy_id") != candidate.id)
    table.refuse(row,
                 fmt::format("this search tries strategy {} here, the table has {}", candidate.id,
                             table.cell(row, "strategy_id")),
                 "--resume goes on with the same method, seed, budgets and inputs; begin anew without it");
  const auto step = table.number(row, "step_time_s");
  return step ? std::optional(Seconds{*step}) : std::nullopt;
}

void TrialLog::note(const Candidate& candidate, const std::optional<Seconds>& step) {
  ++count_;
  if (step && (!best_ || *step < *best_)) {
    best_ = step;
    best_origin_ = candidate.origin;
  }
  progress_.set(count_, best_ ? fmt::format("best so far {} ({})", format_seconds(*best_), best_origin_) : "");
}

}  // namespace simsync
