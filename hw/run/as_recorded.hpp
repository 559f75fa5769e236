// A measured run in the form that the simulator records, so that both timelines are written by the same code.
#pragma once
#include "hw/run/measurement.hpp"
#include "sim/timeline/prediction.hpp"

namespace simsync {

/// Spans of all measured steps, times from the start of the first. No flows: a run does not see its links.
Prediction as_recorded(const Plan& plan, const Measurement& measured);

}  // namespace simsync
