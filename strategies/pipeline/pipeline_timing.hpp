// When each pass of a pipeline runs: an exact evaluation of the orders of all stages.
#pragma once
#include <vector>

#include "base/units.hpp"
#include "strategies/pipeline/pipeline_schedule.hpp"

namespace simsync {

/// Of one micro batch in one model chunk.
struct ChunkTimes {
  Seconds forward;
  Seconds backward_input;   ///< gradient of the input
  Seconds backward_weight;  ///< gradients of the weights
  [[nodiscard]] Seconds backward() const { return backward_input + backward_weight; }
};

/// What passes and transfers take.
struct PipelineTimes {
  std::vector<std::vector<ChunkTimes>> chunks;  ///< by stage, then by chunk of the stage; as many on every stage
  /// By stage: of a micro batch's activations to the next stage, and of their gradient back. The last entry is for
  /// interleaved, from the last stage to the next chunk of the first.
  std::vector<Seconds> transfers;
  /// false: stages compute during transfers. true: a transfer occupies its sender after the pass and its receiver
  /// before the pass that needs it. The sender does not wait for the receiver; the receiver begins when the sender has
  /// begun or later.
  bool transfers_occupy_stages = false;
};

/// The same for every model chunk and every transfer.
PipelineTimes equal_times(const PipelineShape& shape, const ChunkTimes& times, Seconds transfer = {});

/// A pass and when it runs, from the begin of the step; transfers not included.
struct TimedTask {
  StageTask task;
  Seconds begin;
  Seconds end;
};

/// What an evaluation says.
struct PipelineTiming {
  std::vector<std::vector<TimedTask>> stages;  ///< by stage, in its order
  Seconds makespan;                            ///< end of the last pass
  std::vector<double> idle;  ///< by stage: share of the makespan in which it computes nothing; 0 for an empty makespan
};

/// Every stage runs its order, each pass as soon as the one before has ended and what it needs is there. A forward
/// needs that of the model chunk before, a backward that of the model chunk behind or, in the last one, the forward;
/// weight gradients need the input gradient. Takes time in proportion to the number of passes.
/// @throws PlanError as check.
PipelineTiming time_pipeline(const PipelineShape& shape, const PipelineTimes& times);
/// The same of any orders, one for each stage. All passes must be there: each micro batch once forward and once
/// backward (whole or in two parts) through every chunk. @throws PlanError when stages wait for each other forever.
PipelineTiming time_orders(const std::vector<StageOrder>& orders, const PipelineTimes& times);

}  // namespace simsync
