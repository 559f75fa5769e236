#include <algorithm>
#include <map>

#include "sim/engine/engine.hpp"
#include "validate/calibrate/calibrate.hpp"

namespace simsync {
namespace {

bool has_buckets(const Cluster& cluster) {
  return std::ranges::any_of(cluster.links, [](const auto& link) { return link.second.service.burst.count > 0; });
}

}  // namespace

Seconds predicted_time(const Probe& probe, const Cluster& cluster) {
  const Plan plan = plan_of(probe, cluster);
  const bool some = times_some_ops(probe.kind);
  // Collectives follow each other directly: only the first finds full buckets. Before others the word that all have
  // ended has travelled, which is a pause.
  const int iterations = probe.collective() && has_buckets(cluster) ? 2 : 1;
  const Prediction prediction =
      replay(plan, cluster, {.solver = Solver::Native, .max_iterations = iterations, .record = some});
  if (!some) return prediction.step;
  std::map<std::int32_t, Seconds> by_rank;
  for (const Span& span : prediction.spans)
    if (plan.ops[static_cast<std::size_t>(span.op)].timed) by_rank[span.group] += span.end - span.start;
  Seconds longest;
  for (const auto& [rank, time] : by_rank) longest = std::max(longest, time);
  return longest;
}

}  // namespace simsync
