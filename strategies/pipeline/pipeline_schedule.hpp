// In which order each stage of a pipeline computes the micro batches of a step.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/words.hpp"

namespace simsync {

/// Rules by which stages order forward and backward passes. All of them flush: a step ends when all gradients are
/// there.
enum class PipelineSchedule {
  GPipe,                  ///< all forwards, then all backwards (Huang et al., "GPipe", NeurIPS 2019)
  OneForwardOneBackward,  ///< "PipeDream-Flush" (Narayanan et al., ICML and SC 2021)
  Interleaved,            ///< the same with several model chunks on a stage (Narayanan et al., SC 2021; Megatron-LM)
  ZeroBubble,             ///< ZB-H1: weight gradients fill idle time (Qi et al., "Zero Bubble", ICLR 2024)
};

/// Their words in files, flags and messages: gpipe, 1f1b, interleaved, zero-bubble.
const Words<PipelineSchedule>& pipeline_schedule_words();
const char* name_of(PipelineSchedule schedule);

/// A model is cut into stages x chunks model chunks, runs of consecutive blocks. Model chunk k lies on stage k % stages
/// and is chunk k / stages of it.
struct PipelineShape {
  PipelineSchedule schedule = PipelineSchedule::OneForwardOneBackward;
  int stages = 1;
  int micro_batches = 1;  ///< of a step, for each pipeline
  int chunks = 1;         ///< model chunks per stage (virtual stages)
  friend bool operator==(const PipelineShape&, const PipelineShape&) = default;

  /// Both only of shapes that pass check.
  [[nodiscard]] int model_chunks() const { return stages * chunks; }
  [[nodiscard]] int passes() const { return micro_batches * chunks; }  ///< forward passes of a stage in a step
};

/// Forward passes of all stages together: what an order and its times may take of memory.
inline constexpr std::int64_t kMostPasses = std::int64_t{1} << 22;

/// Why there is no such pipeline, and what would be legal: numbers below 1; several chunks with any schedule but
/// interleaved, which needs two or more, and a number of micro batches that the stages divide; more than kMostPasses.
std::optional<std::string> obstacle_to(const PipelineShape& shape);
/// @throws PlanError with obstacle_to.
void check(const PipelineShape& shape);

/// One pass of one micro batch through one model chunk.
struct StageTask {
  enum class Kind {
    Forward,
    Backward,        ///< gradients of the input and of the weights
    BackwardInput,   ///< gradient of the input alone, which the stage before waits for
    BackwardWeight,  ///< gradients of the weights, which only the end of the step waits for
  };
  Kind kind = Kind::Forward;
  int micro_batch = 0;
  int chunk = 0;  ///< of the stage
  friend bool operator==(const StageTask&, const StageTask&) = default;
};

/// `F3`, `B3` (also of the gradient of the input alone) or `W3` of micro batch 3; of further chunks `F3 chunk 1`.
std::string name_of(const StageTask& task);

using StageOrder = std::vector<StageTask>;

/// What `stage` (from 0) computes, one after the other. @throws PlanError as check.
StageOrder stage_order(const PipelineShape& shape, int stage);
/// Of every stage. @throws PlanError as check.
std::vector<StageOrder> stage_orders(const PipelineShape& shape);

/// Most activations that a stage holds at once, counted along its order. The unit is what one micro batch leaves in one
/// model chunk. They are held from the begin of the forward pass to the end of the backward pass; of those whose input
/// gradient is there, `kept` (0 to 1) remains until the gradients of the weights are, too.
double count_held(const StageOrder& order, double kept = 1.0);

}  // namespace simsync
