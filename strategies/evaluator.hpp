// Who says how fast a strategy is: an estimate, a replay or a real run.
#pragma once
#include "base/units.hpp"
#include "strategies/strategy.hpp"

namespace simsync {

/// Seconds of a step, each of the busiest of its kind.
struct StepLoads {
  Seconds compute;         ///< of a device, with the update
  Seconds collectives;     ///< of the stream of collectives
  Seconds copies;          ///< between a device and its host, one direction
  Seconds worker_link;     ///< of the network of a node without servers, one direction
  Seconds server_link;     ///< the same of a node with servers
  Seconds host_threads;    ///< that sum the gradients of a node or call servers
  Seconds server_threads;  ///< that sum, apply and answer
};

struct Evaluation {
  Seconds step;
  /// The largest of `loads`: as far as these are right, no order of the same work takes less.
  Seconds bound;
  StepLoads loads;
};

/// Evaluates strategies for one model, one cluster and one number of workers. The same strategy has the same
/// evaluation, unless real runs say it.
class Evaluator {
public:
  Evaluator() = default;
  virtual ~Evaluator() = default;
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  /// @throws PlanError when the strategy does not fit model or cluster.
  virtual Evaluation evaluate(const Strategy& strategy) = 0;
};

}  // namespace simsync
