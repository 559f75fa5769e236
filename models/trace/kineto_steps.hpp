// The training steps of a Kineto trace.
#pragma once
#include <string>
#include <vector>

#include "models/trace/kineto_events.hpp"

namespace simsync::detail {

/// The calls of an optimizer's step, by end.
std::vector<KinetoRange> optimizer_steps(const KinetoEvents& events);

/// The steps that the trace marks (ProfilerStep#n). Without marks a step ends where an optimizer has stepped after
/// gradients; the first of three or more, which holds what happens once, is left out. A trace with fewer than two steps
/// of an optimizer is one step. What was inferred is added to `notes`. `events` has operators.
std::vector<KinetoRange> steps_of(const KinetoEvents& events, std::vector<std::string>& notes);

}  // namespace simsync::detail
