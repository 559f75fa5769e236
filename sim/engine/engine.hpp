// Turns a plan into a predicted timeline.
#pragma once
#include "platforms/cluster.hpp"
#include "sim/plan/plan.hpp"
#include "sim/problem/replay_options.hpp"
#include "sim/timeline/prediction.hpp"

namespace simsync {

/// Replays iterations of `plan` on `cluster` until the step is steady: it equals the one before, within `convergence`.
/// The first, from a cold start, is not compared, unless nothing of an iteration begins before the one before has
/// ended: then all of them start cold, and where no control message is under way either and no link has tokens to
/// spare, the first is all there is to know (unless `record` is set). Where steps vary (Plan::steps_vary): until their
/// mean is known (EnoughSteps). Both are only read; neither is kept. Deterministic. Cost: O(ops x simulated groups)
/// memory, O(flows x flows in flight) time.
/// @throws PlanError when the plan does not fit the cluster, or `folded` was asked for and nodes cannot stand for each
/// other (choose_folding).
Prediction replay(const Plan& plan, const Cluster& cluster, const ReplayOptions& options);

}  // namespace simsync
