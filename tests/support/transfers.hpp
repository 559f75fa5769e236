// Transfers between hosts without anything else, and when each of them arrives.
#pragma once
#include <vector>

#include "sim/engine/engine.hpp"

namespace simsync::test {

struct TimedTransfer {
  int from = 0;
  int to = 0;
  double bytes = 0.0;
  double at = 0.0;  ///< s
  int streams = 0;
  int gpu = -1;  ///< of the sender
  double first_turn = kWhole;
  double later_turn = kWhole;
};

/// s, by transfer.
inline std::vector<double> arrivals(const Cluster& cluster, const std::vector<TimedTransfer>& transfers) {
  Plan plan;
  plan.set_ranks(cluster.workers(cluster.gpu_count()));
  for (const TimedTransfer& sent : transfers) {
    Op op;
    op.grouping = kWholeJob;
    op.body = Transfer{.from = {End::Kind::Fixed, {sent.from, sent.gpu}},
                       .to = {End::Kind::Fixed, {sent.to, -1}},
                       .bytes = sent.bytes,
                       .setup = Seconds{sent.at},
                       .streams = sent.streams,
                       .first_turn = sent.first_turn,
                       .later_turn = sent.later_turn};
    plan.ops.push_back(op);
  }
  const Prediction run = replay(plan, cluster, {.fidelity = Fidelity::Fluid, .max_iterations = 1, .record = true});
  std::vector<double> out(transfers.size());
  for (const Span& span : run.spans)
    if (span.iteration == 0) out[static_cast<std::size_t>(span.op)] = span.end.value();
  return out;
}

}  // namespace simsync::test
