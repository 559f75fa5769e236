// Measurements that a token bucket passed above its rate. Private to this folder.
#pragma once
#include <string>
#include <vector>

#include "sim/problem/probe.hpp"

namespace simsync::detail {

struct BurstRows {
  std::vector<Probe> kept;
  std::vector<Probe> left_out;
  std::string note;  ///< empty when nothing was left out
};

/// Sets rows apart that are faster than the nominal rates of `cluster` allow while larger ones of the same kind, ranks
/// and count are not: after a pause a shaped port passes its first bytes above its rate, which says nothing about what
/// a transfer costs. None where the cluster states a `burst`, which explains them. Costs a replay of each row.
BurstRows without_bursts(const Cluster& cluster, const std::vector<Probe>& probes);

}  // namespace simsync::detail
