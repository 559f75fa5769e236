#include "hw/run/as_recorded.hpp"

#include <algorithm>

namespace simsync {

Prediction as_recorded(const Plan& plan, const Measurement& measured) {
  Prediction out;
  out.step = measured.step();
  out.steps = measured.steps;
  out.rank_steps = measured.rank_steps;
  out.staleness = measured.staleness;
  out.steady = true;
  out.fidelity = Fidelity::Steps;
  out.simulated_ranks = plan.rank_count();
  out.ranks = plan.ranks;
  out.groupings = plan.groupings;
  for (const int node : plan.nodes) out.stands_for[node] = 1;
  if (measured.spans.empty()) return out;
  const double begin = measured.spans.front().start;
  const int first = measured.spans.front().iteration;
  for (const MeasuredSpan& s : measured.spans) {
    const auto iteration = static_cast<std::size_t>(s.iteration - first);
    out.spans.push_back({.op = s.instance.op,
                         .group = s.instance.group,
                         .iteration = static_cast<int>(iteration),
                         .ready = Seconds{s.start - begin},
                         .start = Seconds{s.start - begin},
                         .end = Seconds{s.end - begin}});
    if (out.iteration_end.size() <= iteration) out.iteration_end.resize(iteration + 1);
    out.iteration_end[iteration] = std::max(out.iteration_end[iteration], Seconds{s.end - begin});
  }
  return out;
}

}  // namespace simsync
