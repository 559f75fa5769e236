#include "strategies/sbp/boxing.hpp"

#include "base/error.hpp"

namespace simsync {
namespace {

std::optional<double> partial_penalty(double bytes, DeviceSets sets, PartialPolicy policy) {
  constexpr double kMiddle = 4.0;  // OneFlow's factor
  switch (policy) {
    case PartialPolicy::Slight:
      return 1.0;
    case PartialPolicy::Middle:
      return kMiddle * bytes * static_cast<double>(sets.producers + sets.consumers);
    case PartialPolicy::Strict:
      return std::nullopt;
  }
  assertion_failed("every policy has a penalty", __FILE__, __LINE__);
}

}  // namespace

const char* name_of(BoxingOp op) {
  switch (op) {
    case BoxingOp::None:
      return "none";
    case BoxingOp::AllToAll:
      return "all-to-all";
    case BoxingOp::AllGather:
      return "all-gather";
    case BoxingOp::ReduceScatter:
      return "reduce-scatter";
    case BoxingOp::AllReduce:
      return "all-reduce";
    case BoxingOp::Slice:
      return "slice";
    case BoxingOp::ZeroFill:
      return "zero-fill";
  }
  assertion_failed("every boxing operation has a name", __FILE__, __LINE__);
}

std::optional<BoxingOp> boxing_op(Sbp from, Sbp to, int ranks, const BoxingRules& rules) {
  SIMSYNC_ASSERT(ranks >= 1);
  if (from == to || ranks == 1) return BoxingOp::None;
  if (to.is_partial()) {
    if (rules.partial == PartialPolicy::Strict) return std::nullopt;
    if (from.is_split() && !rules.split_to_partial) return std::nullopt;
    return BoxingOp::ZeroFill;
  }
  if (from.is_broadcast()) return BoxingOp::Slice;
  if (from.is_split()) return to.is_split() ? BoxingOp::AllToAll : BoxingOp::AllGather;
  return to.is_split() ? BoxingOp::ReduceScatter : BoxingOp::AllReduce;
}

double bytes_sent(BoxingOp op, double bytes, int ranks) {
  const auto p = static_cast<double>(ranks);
  switch (op) {
    case BoxingOp::AllToAll:
      return bytes * (p - 1.0) / (p * p);
    case BoxingOp::AllGather:
    case BoxingOp::ReduceScatter:
      return bytes * (p - 1.0) / p;
    case BoxingOp::AllReduce:
      return 2.0 * bytes * (p - 1.0) / p;
    case BoxingOp::None:
    case BoxingOp::Slice:
    case BoxingOp::ZeroFill:
      return 0.0;
  }
  assertion_failed("every boxing operation has its bytes", __FILE__, __LINE__);
}

int messages_sent(BoxingOp op, int ranks) {
  switch (op) {
    case BoxingOp::AllToAll:
    case BoxingOp::AllGather:
    case BoxingOp::ReduceScatter:
      return ranks - 1;
    case BoxingOp::AllReduce:
      return 2 * (ranks - 1);
    case BoxingOp::None:
    case BoxingOp::Slice:
    case BoxingOp::ZeroFill:
      return 0;
  }
  assertion_failed("every boxing operation has its messages", __FILE__, __LINE__);
}

Seconds ring_time(BoxingOp op, double bytes, int ranks, const AxisLink& link) {
  const int messages = messages_sent(op, ranks);
  if (messages == 0) return Seconds{};
  return static_cast<double>(messages) * link.startup + Seconds{bytes_sent(op, bytes, ranks) / link.bandwidth.value()};
}

std::optional<double> oneflow_bytes(Sbp from, Sbp to, double bytes, int ranks, const BoxingRules& rules) {
  const std::optional<BoxingOp> op = boxing_op(from, to, ranks, rules);
  if (!op) return std::nullopt;
  if (*op == BoxingOp::ZeroFill) return partial_penalty(bytes, {ranks, ranks}, rules.partial);
  if (*op == BoxingOp::Slice) return 1.0;
  return bytes_sent(*op, bytes, ranks) * static_cast<double>(ranks);
}

std::optional<double> oneflow_bytes(Sbp from, Sbp to, double bytes, DeviceSets sets, const BoxingRules& rules) {
  SIMSYNC_ASSERT(sets.producers >= 1 && sets.consumers >= 1);
  double total = bytes;
  if (to.is_broadcast()) total += bytes * static_cast<double>(sets.consumers - 1);
  if (from.is_partial()) total += bytes * static_cast<double>(sets.producers - 1);
  if (!to.is_partial()) return total;
  if (!from.is_broadcast() && !rules.split_to_partial) return std::nullopt;
  const std::optional<double> penalty = partial_penalty(bytes, sets, rules.partial);
  if (!penalty) return std::nullopt;
  return total + *penalty;
}

}  // namespace simsync
