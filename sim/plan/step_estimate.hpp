// What a step takes by the loads of its resources: a strategy without a plan and without a network.
//
// For searches, which look at many strategies and replay a few. One worker stands for all. Work goes through the
// resources that it needs one after another, and on each of them waits for what came before it. So the estimate has the
// order of the backward pass, fusion, priorities, pipelines of pieces and what hides behind compute; it leaves out how
// flows share links at a time, turns on connections, and all that makes workers differ.
#pragma once
#include <memory>

#include "models/profile.hpp"
#include "platforms/cluster.hpp"
#include "strategies/evaluator.hpp"

namespace simsync {

namespace detail {
struct EstimateContext;
}

/// Estimates strategies for one model on one cluster. What they share is computed once.
class StepEstimator {
public:
  /// Model, profile and cluster must outlive it. Times of the profile hold for the batch and the micro-steps of every
  /// strategy. @throws PlanError when the cluster has fewer GPUs than `workers`.
  StepEstimator(const Model& model, const Profile& profile, const Cluster& cluster, int workers);
  ~StepEstimator();
  StepEstimator(StepEstimator&&) noexcept;
  StepEstimator& operator=(StepEstimator&&) = delete;

  /// For strategies in lock step that compile() takes for as many workers. Deterministic. Cost: O(variables x shards),
  /// independent of workers and of pieces. Not thread-safe.
  [[nodiscard]] Evaluation estimate(const Strategy& strategy) const;

private:
  std::unique_ptr<detail::EstimateContext> context_;
};

}  // namespace simsync
