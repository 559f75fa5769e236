// What a step consists of, in parts that people name: which one limits it, and how much.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sim/engine/critical_path.hpp"
#include "sim/problem/problem.hpp"

namespace simsync {

enum class PartKind : std::uint8_t {
  Compute,
  Waiting,        ///< for a rank that computes longer than the median one
  Communication,  ///< bytes on links
  Host,           ///< work of servers and hosts
  Fixed,          ///< what a message or an operation costs whatever its size
};
const char* name_of(PartKind kind);

struct StepPart {
  PartKind kind = PartKind::Compute;
  std::string name;   ///< `compute`, `ring on ethernet`, `ethernet of the servers`, `server CPU`
  std::string limit;  ///< what parts of different strategies have in common: `ethernet`, for other kinds the name
  Seconds time;
};

/// The pieces of a critical path summed up by name, longest first.
std::vector<StepPart> step_parts(const Problem& problem, const Prediction& recorded,
                                 const std::vector<PathPiece>& path);

/// Nodes that compute more slowly than the median node: `node3`, `node3, node5`; empty: none does.
std::string slow_nodes(const Problem& problem);

/// What limits the step and its share of it, such as `59 % ring on ethernet`. Of asynchronous workers: what is
/// busy most of the time. Without a record (Prediction::recorded), compute or communication, whichever takes more.
/// Cost: one critical path.
std::string limit_phrase(const Problem& problem, const Prediction& prediction);

/// Options for limit_phrase: keep the last step, or all that vary, and give up where that would take hundreds of MB.
ReplayOptions recorded_for_limit(const Problem& problem);

}  // namespace simsync
