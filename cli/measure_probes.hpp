// Live measurements for `calibrate --measure`.
#pragma once
#include <string>
#include <vector>

#include "cli/testbed_flags.hpp"
#include "platforms/cluster.hpp"
#include "sim/problem/probe.hpp"

namespace simsync {

struct MeasuredProbes {
  Cluster cluster;  ///< what was built and measured
  std::vector<Probe> probes;
};

/// Runs `simsync-hw probe`, which shows its progress, in a process of its own; it ends with this one. `keep` is the
/// file that its rows go to; empty: none. Nothing else stays behind.
/// @throws CapabilityError when it cannot be started; WorkerError with its exit code when it fails, after it said why;
/// RunError when it is ended by a signal, or a signal asks this process to stop.
MeasuredProbes measure_probes(const TestbedFlags& flags, const std::string& keep);

}  // namespace simsync
