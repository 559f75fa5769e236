// Replayed times of probes, each replayed once for the numbers that it can depend on. Private to this folder.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "sim/problem/probe.hpp"

namespace simsync::detail {

class KnownTimes {
public:
  /// predicted_time of probe number `index` on `cluster`, which differs from other clusters it was asked about by
  /// `settings` (keys of set_parameter) alone.
  Seconds of(std::size_t index, const Probe& probe, const Cluster& cluster,
             const std::vector<std::pair<std::string, std::string>>& settings);

private:
  struct Known {
    std::string numbers;  ///< what the probe can depend on
    Seconds time;
  };
  /// The latest times of one probe. An old entry's memory is used again: many small ones that stay would tear the heap
  /// that replays live on.
  struct Row {
    std::vector<Known> latest;
    std::size_t oldest = 0;
  };
  std::vector<Row> rows_;  ///< by number of the probe
  std::string numbers_;
};

/// Whether a number can change the time of such a probe: servers have no part in collectives and messages, collectives
/// none in what servers do, and only pushes are summed.
bool depends(const Probe& probe, const std::string& key);

}  // namespace simsync::detail
