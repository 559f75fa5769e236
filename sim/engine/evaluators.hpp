// The simulator as an Evaluator, in two tiers: estimates for the many, replays for the few.
#pragma once
#include <memory>

#include "sim/problem/problem.hpp"
#include "strategies/evaluator.hpp"

namespace simsync {

/// StepEstimator: no plan and no network. `problem` must outlive it; its strategy only says how many workers there are
/// and what its profile is for (batch, micro-steps, recomputation), which all strategies share.
std::unique_ptr<Evaluator> estimating_evaluator(const Problem& problem);

/// Compiles every strategy and replays it with `problem.options`. Loads and bound are those of the estimate.
std::unique_ptr<Evaluator> replaying_evaluator(const Problem& problem);

}  // namespace simsync
