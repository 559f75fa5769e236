// Asynchronous workers, in words: how stale they are, and what the closed form says beside the simulation.
#pragma once
#include <string>

#include "sim/problem/problem.hpp"
#include "sim/timeline/prediction.hpp"

namespace simsync {

/// Several lines, the last one ended. `prediction` is of the problem's plan, whose workers are asynchronous.
std::string pace_text(const Problem& problem, const Prediction& prediction);

/// What asynchronous workers keep busy most of the time.
struct PaceLimit {
  std::string name;   ///< `compute`, `server CPU`, `network of the servers`, `links`
  double busy = 0.0;  ///< its share of the time, the busiest one's
};
PaceLimit pace_limit(const Problem& problem, const Prediction& prediction);

}  // namespace simsync
