// A probe on real processes, and its row.
#pragma once
#include <string>
#include <vector>

#include "hw/run/launch.hpp"
#include "sim/problem/choose_probes.hpp"

namespace simsync {

/// Times of one probe, by iteration.
struct ProbeTimes {
  std::vector<Seconds> each;
  [[nodiscard]] Seconds median() const { return quantile_of(each, 0.5); }
};

/// Runs plan_of for a cluster that the processes are on. Of collectives, which follow each other directly, the whole
/// iteration counts; of compute beside them the compute; of reads the reads; of the others what follows the first start,
/// so that the message from the end of one iteration to those who begin the next is left out. `options.run` is replaced.
/// @throws what launch throws, PlanError when the probe does not fit the cluster.
ProbeTimes run_probe(const ProbeRun& run, const Cluster& cluster, LaunchOptions options);

/// A row of a table that read_probes reads.
const std::vector<std::string>& probe_header();
std::vector<std::string> probe_cells(const Probe& probe, const ProbeTimes& times);

}  // namespace simsync
