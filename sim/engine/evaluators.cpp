#include "sim/engine/evaluators.hpp"

#include "base/error.hpp"
#include "sim/engine/engine.hpp"
#include "sim/plan/collective_alone.hpp"
#include "sim/plan/compile.hpp"
#include "sim/plan/pipeline_fill.hpp"
#include "sim/plan/step_estimate.hpp"

namespace simsync {
namespace {

class EstimatingEvaluator final : public Evaluator {
public:
  explicit EstimatingEvaluator(const Problem& problem)
      : problem_(problem),
        estimator_(problem.model, problem.profile, problem.cluster, problem.strategy.graph.workers) {}

  Evaluation evaluate(const Strategy& strategy) override {
    check(strategy, problem_.model, problem_.cluster);
    const GraphStrategy& asked = strategy.graph;
    const GraphStrategy& known = problem_.strategy.graph;
    if (asked.workers != known.workers || asked.micro_steps != known.micro_steps || asked.recompute != known.recompute)
      throw PlanError("strategy '" + strategy.name +
                      "' differs in workers, micro-steps or recomputation from what the evaluator was made for");
    if (asked.parallel != known.parallel || !asked.parallel.is_trivial())
      throw PlanError("strategy '" + strategy.name +
                      "' has replicas of several ranks: there is no estimate of those yet, only a replay");
    if (!in_lock_step(strategy) || asked.random_pull_order)
      throw PlanError("strategy '" + strategy.name + "' has steps that differ from each other: it is not estimated");
    return estimator_.estimate(strategy);
  }

private:
  const Problem& problem_;
  StepEstimator estimator_;
};

class ReplayingEvaluator final : public Evaluator {
public:
  ReplayingEvaluator(const Problem& problem, Solver solver)
      : problem_(problem), options_(problem.options), estimating_(problem) {
    options_.solver = solver;
    options_.fills = std::make_shared<PipelineFills>();
    options_.alone = std::make_shared<CollectiveAlone>(problem.cluster, problem.plan.ranks);
  }

  Evaluation evaluate(const Strategy& strategy) override {
    Evaluation out = estimating_.evaluate(strategy);
    const Plan plan = compile(problem_.model, problem_.profile, problem_.cluster, strategy);
    out.step = replay(plan, problem_.cluster, options_).step;
    return out;
  }

private:
  const Problem& problem_;
  ReplayOptions options_;
  EstimatingEvaluator estimating_;
};

}  // namespace

std::unique_ptr<Evaluator> estimating_evaluator(const Problem& problem) {
  return std::make_unique<EstimatingEvaluator>(problem);
}

std::unique_ptr<Evaluator> replaying_evaluator(const Problem& problem, Solver solver) {
  return std::make_unique<ReplayingEvaluator>(problem, solver);
}

}  // namespace simsync
