// A schedule as text, for people.
#pragma once
#include <string>

#include "strategies/pipeline/pipeline_schedule.hpp"

namespace simsync {

/// One line for each stage, from the begin of the step to its end, where the forward pass of a chunk and both parts of
/// its backward pass take one column each and transfers take no time. F is a forward pass, B a backward pass or its
/// first part, W the gradients of the weights; the number of the micro batch follows, a dash continues a pass, and a
/// dot is an idle column. Passes of a stage's second chunk have small letters.
/// @throws PlanError as check, and for more than two chunks.
std::string schedule_picture(const PipelineShape& shape);

}  // namespace simsync
