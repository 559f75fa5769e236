#include "sim/plan/launch_stream.hpp"

namespace simsync::detail {

LaunchStream::LaunchStream(PlanWriter& writer) : w_(writer), costs_(writer.strategy.graph.parallel.host) {
  if (on()) queue_ = writer.add_queue({.name = "launches", .grouping = writer.each, .slots = 1});
}

OpId LaunchStream::flush() {
  Op op;
  op.grouping = w_.each;
  op.queue = queue_;
  op.reason = {Phase::Start, -1, "launches"};
  op.body = HostWork{.action = HostAction::Wait, .at = {}, .duration = pending_};
  if (previous_ >= 0) op.after.push_back({previous_, 0});
  pending_ = Seconds{0.0};
  previous_ = w_.add(std::move(op));
  if (first_ < 0) first_ = previous_;
  return previous_;
}

OpId LaunchStream::announce(OpId device) {
  pending_ += costs_.transfer;
  const OpId sent = flush();
  w_.plan.ops[static_cast<std::size_t>(sent)].after.push_back({device, 0});
  return sent;
}

void LaunchStream::repeat() {
  if (first_ < 0) return;
  w_.plan.ops[static_cast<std::size_t>(first_)].after.push_back({previous_, 1});
  if (costs_.waits) w_.first_launch = first_;
}

}  // namespace simsync::detail
