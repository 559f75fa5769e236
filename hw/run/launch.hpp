// Starts the processes of a run on this machine, watches them and ends them all when one fails.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "hw/run/agent.hpp"

namespace simsync {

struct LaunchOptions {
  RunOptions run;
  int port = 29500;  ///< agent 0 listens here on its own address
  /// IP address of a node of the plan.
  std::function<std::string(int node)> address;
  /// Called in the new process before anything else, to move it to its node.
  std::function<void(int node)> enter;
  std::vector<double> slowdown;  ///< by rank; empty: 1
  DeviceFactory devices;         ///< called in each rank's process; null: emulated compute, and Gloo
  /// Other programs on this machine wait while an agent has something to do: emulated hosts have processors of their
  /// own. Ignored where real_time_allowed() is false.
  bool real_time = false;
};

/// Whether this process may schedule its children in real time (root may, others by RLIMIT_RTPRIO).
bool real_time_allowed();

/// One process per rank and per server, as children of this one, which must have a single thread. Whatever happens,
/// none is left when it returns. When a process dies, hangs or fails, the others are ended and the error names the
/// first one, how it ended, and what it said.
/// @throws RunError, WrongResult, CapabilityError as the processes did; RunError when a signal asks to stop.
Measurement launch(const Plan& plan, const LaunchOptions& options);

}  // namespace simsync
