// What the step time consists of: the chain of ops and waits that ends with the iteration.
#pragma once
#include <string>
#include <vector>

#include "sim/timeline/prediction.hpp"

namespace simsync {

/// A stretch of the critical path during which one thing held everything up.
struct PathPiece {
  Seconds begin;
  Seconds length;
  /// Part of `length` that is due to sharing: other flows on the link, or another op that had the server, stream,
  /// connection or credit which the next op of the path was ready to use.
  Seconds shared;
  std::string resource;  ///< `compute backward`, `latency and fixed costs`, `link nic-in`, `server CPU`, ...
  std::string where;     ///< `node0:gpu1`, `node0/nic-in`
  std::string what;      ///< title of the op or of its part: `backward fc6`
  OpId op = -1;          ///< whose time it is; -1: none's
};

/// The critical path of one iteration, which must have been recorded: from the end of the iteration before (or the
/// cold start) to its own end, in order of time and without gaps, so that the lengths add up to the step.
/// `iteration` -1 means the last one, which is the steady one.
///
/// It is found backwards: from the op that ended last to the op whose end let it start (Span::cause), and so on.
/// Inside a transfer, set-up and latency come first, then the flow. A transfer that waited for its turn on a connection
/// begins with its turn; the path goes on with the transfer whose end gave it that turn (FlowSpan::cause). Inside a
/// collective, the pipelines that ended one after another, each by its hop that was busy longest; what no hop accounts
/// for is start-up and rounds.
std::vector<PathPiece> critical_path(const Plan& plan, const Cluster& cluster, const Prediction& prediction,
                                     int iteration = -1);

/// The pieces of each of these spans (indices into Prediction::spans), whatever is critical.
std::vector<std::vector<PathPiece>> pieces_of(const Plan& plan, const Cluster& cluster, const Prediction& prediction,
                                              const std::vector<std::size_t>& spans);

/// Pieces that cost a message its time whatever its size.
inline constexpr const char* kLatency = "latency and fixed costs";
/// Pieces in which a device's memory copied gradients into and out of a bucket, or encoded and decoded them.
inline constexpr const char* kPacking = "packing";
/// Pieces in which a transfer waited for others on its connection; on the critical path those others stand instead.
inline constexpr const char* kTurn = "turn on a connection";
/// Pieces in which a server's thread was woken for a request.
inline constexpr const char* kServerDispatch = "server dispatch";
/// Pieces in which the framework let time pass (HostAction::Wait).
inline constexpr const char* kFrameworkWait = "wait of the framework";
/// Pieces of compute beyond its parts: collectives on the same device slowed it down.
inline constexpr const char* kSlowedCompute = "compute slowed by collectives";

}  // namespace simsync
