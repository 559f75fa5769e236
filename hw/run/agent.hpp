// One process of a real run.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "hw/run/executor.hpp"
#include "hw/run/measurement.hpp"

namespace simsync {

/// What all processes of a run agree on.
struct RunOptions {
  int iterations = 10;  ///< measured steps
  int warm_up = 3;      ///< steps before them; one more behind them compares every value and is not timed
  int recorded = 2;     ///< of the measured ones: the last so many, with all that they consist of
  Optimizer optimizer = Optimizer::Momentum;
  double timeout_s = 30.0;  ///< without progress, and while the processes look for each other
  [[nodiscard]] int iterations_in_all() const { return warm_up + iterations + 1; }
};

/// What one process needs to know to take part.
struct AgentOptions {
  AgentId self = 0;
  std::string address;         ///< own IP address
  std::string agent0_address;  ///< where agent 0 listens, `address:port`
  double slowdown = 1.0;       ///< of this rank's device
  DeviceFactory devices;       ///< null: emulated compute, and Gloo
  RunOptions run;
};

/// Takes part in a run of `plan` until it is over. @return on agent 0 the measurement, elsewhere nothing.
/// @throws RunError, WrongResult, CapabilityError; the other agents then fail too, because the connections end.
std::optional<Measurement> run_agent(const Plan& plan, const AgentOptions& options);

/// `worker 2 (node 2)`, `server on node0:cpu0`.
std::string name_of(const Plan& plan, AgentId agent);

}  // namespace simsync
