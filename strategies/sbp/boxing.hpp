// What it costs to bring a tensor from one layout into another ("boxing") along one mesh axis.
#pragma once
#include <cstdint>
#include <optional>

#include "base/units.hpp"
#include "strategies/sbp/signature.hpp"

namespace simsync {

/// How a layout becomes another one.
enum class BoxingOp : std::uint8_t {
  None,           ///< it is the same, or there is one rank only
  AllToAll,       ///< S(i) -> S(j)
  AllGather,      ///< S -> B
  ReduceScatter,  ///< P -> S
  AllReduce,      ///< P -> B
  Slice,          ///< B -> S: each rank keeps its piece of what it has
  ZeroFill,       ///< B -> P, S -> P: each rank puts zeros for what others bring
};
/// `all-gather`, `zero-fill`, ...
const char* name_of(BoxingOp op);

/// What OneFlow's cost model says of a transition into a partial sum (ONEFLOW_PENALTY_FOR_PARTIAL_IN_CONSUMER_POLICY in
/// oneflow/core/framework/sbp_infer_util.cpp). Such transitions send nothing, but waste memory and time of what
/// follows.
enum class PartialPolicy : std::uint8_t {
  Slight,  ///< it costs one byte
  Middle,  ///< it costs 4 T (producing ranks + consuming ranks); OneFlow's default
  Strict,  ///< there is none
};
struct BoxingRules {
  PartialPolicy partial = PartialPolicy::Middle;
  /// S -> P in one step, as in OneFlow's eager mode; its lazy mode has none and goes S -> B -> P.
  bool split_to_partial = false;
};

/// A ring's hop: what one message costs beside its bytes, and how fast one rank sends.
struct AxisLink {
  Seconds startup;
  BytesPerSecond bandwidth;
};

/// Nullopt where the rules have no such transition. On one rank every transition is None.
std::optional<BoxingOp> boxing_op(Sbp from, Sbp to, int ranks, const BoxingRules& rules = {});

/// Bytes that each rank sends when a tensor of `bytes` (T) is in equal pieces on p ranks, which is what ring algorithms
/// reach: T (p-1)/p^2 of an all-to-all, T (p-1)/p of an all-gather or a reduce-scatter, twice that of an all-reduce,
/// else none. Not a whole number in general.
double bytes_sent(BoxingOp op, double bytes, int ranks);
/// Messages that each rank sends one after another: p-1, of an all-reduce twice as many.
int messages_sent(BoxingOp op, int ranks);
/// Start-up for each message, and the time of the bytes that a rank sends.
Seconds ring_time(BoxingOp op, double bytes, int ranks, const AxisLink& link);

/// Bytes over all ranks as OneFlow counts them: T (p-1)/p of S -> S, T (p-1) of S -> B and P -> S, 2 T (p-1) of P -> B,
/// 1 of B -> S, and what the policy says of B -> P and S -> P. Nullopt where the rules have no such transition.
std::optional<double> oneflow_bytes(Sbp from, Sbp to, double bytes, int ranks, const BoxingRules& rules = {});

/// Ranks of two sets of devices.
struct DeviceSets {
  int producers = 1;
  int consumers = 1;
};
/// The same between different sets of devices: T, and (consumers - 1) T if the consumer is B, and (producers - 1) T if
/// the producer is P, and the penalty of a consumer that is P. OneFlow's lazy mode (no `split_to_partial`) has no P ->
/// P either.
std::optional<double> oneflow_bytes(Sbp from, Sbp to, double bytes, DeviceSets sets, const BoxingRules& rules = {});

}  // namespace simsync
