// What a schedule costs where all stages take equally long: equations in place of an evaluation.
#pragma once
#include "base/units.hpp"
#include "strategies/pipeline/pipeline_schedule.hpp"
#include "strategies/pipeline/pipeline_timing.hpp"

namespace simsync {

/// What the step takes beyond the work of one stage, when every model chunk takes `times` for a micro batch and
/// transfers take no time. With F, B and W for forward, backward of the input and backward of the weights, all of one
/// model chunk:
///   gpipe, 1f1b, interleaved   (stages - 1) (F + B + W)
///   zero-bubble                (stages - 1) (F + B) - (min(stages, micro batches) - 1) min(F, B, W)
/// A chunk under interleaved is 1 / chunks of a stage, and so is its bubble. Sources: Narayanan et al., SC 2021,
/// section 2.2; Qi et al., ICLR 2024, section 2.3, who have (stages - 1) (F + B - W) for zero-bubble. The form above is
/// the same where W <= min(F, B) and there are at least as many micro batches as stages. A longer W fills no more: the
/// first stage waits (stages - 1) B for its first backward, the last one (stages - 1) F for its first forward. With
/// fewer micro batches there are fewer weight gradients to fill the end with.
/// @throws PlanError as check.
Seconds bubble_time(const PipelineShape& shape, const ChunkTimes& times);
/// The work of one stage and bubble_time. @throws PlanError as check.
Seconds pipeline_time(const PipelineShape& shape, const ChunkTimes& times);
/// bubble_time over pipeline_time: the share of the step in which a stage is idle; 0 where nothing takes time.
/// (Narayanan et al. state the bubble over the work instead.) @throws PlanError as check.
double bubble_share(const PipelineShape& shape, const ChunkTimes& times);

/// What count_held counts, for m micro batches, p stages, v chunks and stage s from 0:
///   gpipe         m
///   1f1b          min(m, p - s)
///   interleaved   min(m v, 2 (p - 1 - s) + (v - 1) p + 1)
///   zero-bubble   min(m, p - s) + kept min(s, max(0, m - (p - s)))
/// The unit is one micro batch in one model chunk, so 1 / v of the stage. @throws PlanError as check.
double most_held(const PipelineShape& shape, int stage, double kept = 1.0);

}  // namespace simsync
