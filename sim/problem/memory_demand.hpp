// What a rank keeps in memory of the model that it computes. Private to sim/problem.
#pragma once
#include "models/memory.hpp"
#include "models/profile.hpp"
#include "strategies/stage_model.hpp"
#include "strategies/strategy.hpp"

namespace simsync::detail {

/// Whether a variable, or a shard of it, is on a parameter server.
bool on_servers(const VariableStrategy& entry);

/// What a rank computes: the whole model, or that of its stage.
struct RankModel {
  const Model& model;
  const Strategy& strategy;
  const StageModel* stage = nullptr;

  /// Ranks that share out a sharded variable.
  [[nodiscard]] int shares(VariableId id) const;
};

/// Of one micro-step of `profile`; a pipeline's passes are up to the caller (StageInPipeline).
MemoryDemand demand_of(const RankModel& of, const Profile& profile, const OptimizerState& optimizer);

/// One stage of a pipeline, whatever the micro-steps.
struct StageInPipeline {
  const StageModel& part;
  const ModelParallel& parallel;
  int number = 0;

  /// Whether the schedule can have so many micro-steps.
  [[nodiscard]] bool takes(std::int64_t micro_steps) const;
  /// @throws PlanError as stage_order.
  [[nodiscard]] StagePasses passes(int micro_steps) const;
};

}  // namespace simsync::detail
