#include "validate/predictor.hpp"

#include "base/error.hpp"
#include "sim/engine/engine.hpp"
#include "sim/problem/problem.hpp"

namespace simsync {

ClosedNetwork Predictor::network(const PredictRequest& request) {
  throw PlanError("no closed form is known of '" + request.strategy + "'");
}

Seconds EnginePredictor::step_time(const PredictRequest& request) {
  // Without the interval, which takes more replays, and by the faster solver: fits ask for many.
  Problem problem = prepare(request, inputs_);
  problem.options.solver = Solver::Native;
  return replay(problem.plan, problem.cluster, problem.options).step;
}

Answer EnginePredictor::answer(const PredictRequest& request) {
  const PredictedRow row = predict(request, inputs_);
  return {row.step_time, StepInterval{row.step_low, row.step_high}};
}

ClosedNetwork EnginePredictor::network(const PredictRequest& request) {
  const Problem problem = prepare(request, inputs_);
  if (problem.plan.in_lock_step())
    throw PlanError("saturation is of asynchronous workers, and '" + request.strategy + "' runs in lock step here");
  return closed_network(problem.plan, problem.cluster);
}

}  // namespace simsync
