#include "sim/engine/evaluators.hpp"

#include <algorithm>

#include "sim/engine/engine.hpp"
#include "sim/plan/compile.hpp"
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
    return estimator_.estimate(strategy);
  }

private:
  const Problem& problem_;
  StepEstimator estimator_;
};

class ReplayingEvaluator final : public Evaluator {
public:
  explicit ReplayingEvaluator(const Problem& problem) : problem_(problem), estimating_(problem) {}

  Evaluation evaluate(const Strategy& strategy) override {
    Evaluation out = estimating_.evaluate(strategy);
    const Plan plan = compile(problem_.model, problem_.profile, problem_.cluster, strategy);
    out.step = replay(plan, problem_.cluster, problem_.options).step;
    out.bound = std::min(out.bound, out.step);
    return out;
  }

private:
  const Problem& problem_;
  EstimatingEvaluator estimating_;
};

}  // namespace

std::unique_ptr<Evaluator> estimating_evaluator(const Problem& problem) {
  return std::make_unique<EstimatingEvaluator>(problem);
}

std::unique_ptr<Evaluator> replaying_evaluator(const Problem& problem) {
  return std::make_unique<ReplayingEvaluator>(problem);
}

}  // namespace simsync
