// The simulator as an Evaluator, in two tiers: estimates for the many, replays for the few.
#pragma once
#include <memory>

#include "sim/problem/problem.hpp"
#include "strategies/evaluator.hpp"

namespace simsync {

/// StepEstimator: no plan and no network. `problem` must outlive it. Its strategy only says how many workers there are
/// and what its profile is for (micro-steps, recomputation): strategies that differ in these are refused, and so are
/// those out of lock step.
std::unique_ptr<Evaluator> estimating_evaluator(const Problem& problem);

/// Compiles every strategy and replays it with `problem.options` on this solver. Loads and busiest resource are those
/// of the estimate. Refuses what that refuses.
std::unique_ptr<Evaluator> replaying_evaluator(const Problem& problem, Solver solver = Solver::Native);

}  // namespace simsync
