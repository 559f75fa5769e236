#include "validate/predictor.hpp"

#include "base/error.hpp"
#include "sim/problem/problem.hpp"

namespace simsync {

ClosedNetwork Predictor::network(const PredictRequest& request) {
  throw PlanError("no closed form is known of '" + request.strategy + "'");
}

Seconds EnginePredictor::step_time(const PredictRequest& request) {
  return predict(request, inputs_).step_time;
}

ClosedNetwork EnginePredictor::network(const PredictRequest& request) {
  const Problem problem = prepare(request, inputs_);
  if (problem.plan.in_lock_step())
    throw PlanError("saturation is of workers at their own pace, and '" + request.strategy +
                    "' runs in lock step here");
  return closed_network(problem.plan, problem.cluster);
}

}  // namespace simsync
