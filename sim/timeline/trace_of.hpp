// What one rank did in each step, as a trace that a model and a profile can be made from.
#pragma once
#include <vector>

#include "models/trace/trace.hpp"
#include "sim/timeline/prediction.hpp"

namespace simsync {

/// The steps of `rank` whose compute was recorded whole: its compute, what it received before and during it, what it
/// sent, and what servers did with that. Operations in between (copies, sums, requests) are left out, and what waited
/// for them waits for what they waited for. Times are those of `spans`, of a replay or a real run of `plan`.
Trace trace_of(const Plan& plan, const std::vector<Span>& spans, int rank);

}  // namespace simsync
