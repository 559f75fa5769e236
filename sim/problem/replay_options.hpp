// How a plan is to be simulated, as `--set` chooses it.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "platforms/cluster.hpp"

namespace simsync {

class CollectiveAlone;
class PipelineFills;

/// How finely a collective is simulated; sim/README.md says when each is exact.
enum class Fidelity {
  Auto,    ///< the cheapest that is exact for the plan (but for double trees, see sim/README.md)
  Steps,   ///< every chunk of every round is a flow
  Fluid,   ///< one flow per hop with the algorithm's total bytes, after its start-up time
  Folded,  ///< interchangeable nodes are represented by one of them
};
const char* name_of(Fidelity fidelity);

/// What shares links among flows, see sim/engine/flow_network.hpp.
enum class Solver {
  SimGrid,  ///< the reference
  Native,   ///< our own, several times as fast
};
const char* name_of(Solver solver);

/// How far a replay is.
struct ReplayProgress {
  std::int64_t ops = 0;        ///< instances of ops of one iteration
  std::int64_t completed = 0;  ///< of all iterations so far
  int iterations = 0;          ///< that have ended
  int expected = 0;            ///< iterations in all, at least
  std::int64_t flows = 0;      ///< started so far
};

struct ReplayOptions {
  Fidelity fidelity = Fidelity::Auto;
  Solver solver = Solver::SimGrid;
  int max_iterations = 12;     ///< most steps to simulate where all are alike; 1: only the first, from a cold start
  int steps_per_worker = 0;    ///< where steps vary (Plan::steps_vary): on average of ranks. 0: see EnoughSteps
  double convergence = 1e-3;   ///< relative difference up to which steps count as equal: see replay; below 0: never
  std::int64_t most_work = 0;  ///< give up beyond so much Prediction::work; 0: never
  bool record = false;         ///< keep the spans of every op, for the timeline and the explanation
  int recorded_steps = 0;      ///< keep only what the last so many steps consist of; 0: all
  /// Keep nothing (Prediction::recorded) once this many spans and flows are; 0: never
  std::int64_t most_recorded = 0;
  std::vector<Place> recorded_ranks{};  ///< keep only what these do, and servers (InstanceFilter); none: all
  bool record_rates = false;            ///< keep what links carry, whoever sends it
  // Kept for the next replay, where many are made one by one:
  std::shared_ptr<PipelineFills> fills{};
  std::shared_ptr<CollectiveAlone> alone{};               ///< of the same cluster and ranks
  std::function<void(const ReplayProgress&)> progress{};  ///< called now and then; a short replay ends before
};

}  // namespace simsync
