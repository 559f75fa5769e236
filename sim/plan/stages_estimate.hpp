// What a step takes by tensor parallelism, a pipeline and sharded state: a strategy without a plan or a network.
//
// Passes of a chunk are its layers' times and the collectives of ranks that share out layers, experts or tokens, one
// after another but for those that run beside a layer (tensor_overlap, context_overlap). The order of
// all stages is then evaluated exactly (strategies/pipeline), transfers between stages included. Gradients leave on one
// stream as the last backward pass of their layer ends, those of a tied table between its stages behind them; the step
// ends with the last stage's update. Collectives are those of a group alone, slowed down where the groups of a node
// share its NICs; of groups that lie differently on nodes the slowest counts. A step takes at least as long as what a
// rank sends to other stages. Left out: what else meets on links, what hosts take (HostCosts), and the time that a
// collective takes from compute (CollectiveCosts::interference).
#pragma once
#include <memory>
#include <vector>

#include "models/profile.hpp"
#include "platforms/cluster.hpp"
#include "strategies/evaluator.hpp"
#include "strategies/stage_model.hpp"

namespace simsync {

/// Estimates strategies for one model on one cluster. What several of them share is computed once: stages by how the
/// model is cut, groups by the mesh, collectives by size.
class StagesEstimator {
public:
  /// Model and cluster must outlive it. @throws PlanError when the cluster has fewer GPUs than `workers`.
  StagesEstimator(const Model& model, const Cluster& cluster, int workers);
  ~StagesEstimator();
  StagesEstimator(StagesEstimator&&) noexcept;
  StagesEstimator& operator=(StagesEstimator&&) = delete;

  /// stage_models of this way to cut the model; the order of passes does not matter. Kept as long as this lives.
  /// @throws PlanError as that does.
  const std::vector<StageModel>& stages(const ModelParallel& parallel);

  /// For strategies of which all variables are all-reduced or all are sharded, and that compile() takes for as many
  /// workers; replicas may be single ranks. `profile` is of the whole model, the batch and recomputation of one
  /// micro-step; how many there are is the strategy's. Not thread-safe. @throws PlanError for other synchronizers.
  Evaluation estimate(const Strategy& strategy, const Profile& profile);

private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace simsync
