#include <algorithm>

#include "sim/engine/engine.hpp"
#include "validate/calibrate/calibrate.hpp"

namespace simsync {

Seconds predicted_time(const Probe& probe, const Cluster& cluster) {
  const Plan plan = plan_of(probe, cluster);
  const bool compute = probe.kind == ProbeKind::Overlap;
  const Prediction prediction = replay(plan, cluster, {.max_iterations = 1, .record = compute});
  if (!compute) return prediction.step;
  Seconds longest;
  for (const Span& span : prediction.spans)
    if (plan.ops[static_cast<std::size_t>(span.op)].kind == OpKind::Compute)
      longest = std::max(longest, span.end - span.start);
  return longest;
}

}  // namespace simsync
