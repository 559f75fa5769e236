#include "cli/study_trials.hpp"

#include "base/csv.hpp"
#include "cli/search_question.hpp"
#include "cli/trial_basis.hpp"
#include "sim/engine/engine.hpp"
#include "sim/engine/evaluators.hpp"
#include "strategies/search/features.hpp"

namespace simsync {

Answer CorrectedPredictor::answer(const PredictRequest& given) {
  const PredictRequest request = correction_.asked(given, inputs());
  const Problem problem = prepare(request, inputs());
  PredictedRow row = row_of(request, problem, replay(problem.plan, problem.cluster, problem.options));
  if (problem.plan.in_lock_step()) (void)correction_.apply(request, problem, row);  // others are scored as they are
  return {row.step_time, StepInterval{row.step_low, row.step_high}};
}

std::string trials_of(const StudyResult& result) {
  std::string out = csv_row(trial_header()) + "\n";
  Inputs inputs;
  int number = 0;
  for (const CaseResult& c : result.cases) {
    const int trial = number++;
    if (!c.failure.empty()) continue;
    const Problem problem = prepare(c.asked, inputs);
    if (!problem.plan.in_lock_step()) continue;
    const SearchTarget target = target_of(problem);
    Candidate candidate{.strategy = problem.strategy,
                        .origin = c.the_case.id,
                        .id = strategy_id(problem.strategy, problem.model),
                        .estimate = estimating_evaluator(problem)->evaluate(problem.strategy),
                        .replayed = c.predicted,
                        .features = {}};
    candidate.features =
        strategy_features(problem.strategy, target, problem.samples(), candidate.estimate, c.predicted);
    TrialRow row = trial_row(candidate, target, problem.samples());
    row.trial = trial;
    row.step = c.the_case.measured;
    row.evaluator = "measure";
    row.basis = basis_of(c.asked);
    out += csv_row(trial_cells(row)) + "\n";
  }
  return out;
}

}  // namespace simsync
