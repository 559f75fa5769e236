// Which probes tell a cluster's network and servers, and how long they will take.
#pragma once
#include <vector>

#include "sim/problem/probe.hpp"

namespace simsync {

/// A probe that is to be run, and how.
struct ProbeRun {
  Probe probe;
  int warm_up = 3;
  int iterations = 20;  ///< timed, after the warm-up
  Seconds expected;     ///< of the whole run by nominal rates, with the start of its processes
};

/// How long one probe takes by the nominal rate of the slowest NIC and rough costs of software.
Seconds nominal_time(const Probe& probe, const Cluster& cluster);

/// Messages, all-reduces by ring and halving-doubling, pushes and pulls, each over a range of sizes, on few and on all
/// hosts, and compute beside all-reduces on all hosts; a budget that is short first costs repetitions, then the largest
/// sizes. Ranks are one per node.
/// @throws InputError when `budget` is too short for the smallest choice; PlanError when the cluster has less than two
/// nodes.
std::vector<ProbeRun> choose_probes(const Cluster& cluster, Seconds budget);
/// Of all of them.
Seconds expected_time(const std::vector<ProbeRun>& runs);

}  // namespace simsync
