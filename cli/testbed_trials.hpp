// Trials of a search as real runs on a testbed.
#pragma once
#include <string>
#include <vector>

#include "cli/testbed_flags.hpp"
#include "cli/trials.hpp"

namespace simsync {

/// What all trials have in common.
struct TestbedTrials {
  TestbedFlags testbed;
  std::string model;
  int workers = 1;
  std::int64_t batch = 1;  ///< samples of a worker in a step
  int steps = 5;           ///< that are timed
  int warm_up = 2;         ///< before them
  std::vector<std::pair<std::string, std::string>> settings;
};

/// The cluster of such a testbed, as `simsync measure --cluster-out` writes it.
Cluster testbed_cluster(const TestbedFlags& flags);

/// Runs all strategies that it is given in one launch of `simsync-hw measure`. A strategy whose run fails is told as
/// one that cannot run, and the next launch goes on behind it. Notes of the program appear above the bar, each once.
/// The runner throws CapabilityError when the program cannot be started; RunError, with what it said, when
/// several runs in a row fail.
StrategyRunner run_on_testbed(const TestbedTrials& trials, const Model& model, ProgressBar& progress);

}  // namespace simsync
