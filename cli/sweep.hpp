// Many questions at once, as `sweep` and a `predict` of several strategies ask them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace simsync {

struct SweepOptions {
  std::vector<std::string> models, clusters, strategies;
  std::vector<int> workers{1};
  std::vector<std::int64_t> batches;
  std::vector<std::string> settings;  ///< `key=value` or `key=a,b,c`
  std::string calibration;
  std::string correction;  ///< file of a correction; empty: none
  std::string csv;         ///< file, or `-` for standard output; empty: standard output, unless it gets the table
  std::string shard;
  int jobs = 1;
  bool resume = false;
  std::string sort;
  bool best_first = false;  ///< rows appear at the end, in the order of the table
  bool table = false;       ///< also where standard output is no terminal
};

/// @throws InputError, and WorkerError from its processes.
void run_sweep(const SweepOptions& options);

}  // namespace simsync
