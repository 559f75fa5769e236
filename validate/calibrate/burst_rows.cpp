#include "validate/calibrate/burst_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/parse_units.hpp"
#include "validate/calibrate/calibrate.hpp"

namespace simsync::detail {
namespace {

/// Times measured within so much of the nominal rate may be rounding.
constexpr double kFaster = 0.98;

bool states_burst(const Cluster& cluster) {
  return std::ranges::any_of(cluster.links, [](const auto& link) { return link.second.service.burst.count > 0; });
}

/// The same links at their nominal rates, where nothing else costs time.
Cluster without_costs(Cluster cluster) {
  for (auto& [name, link] : cluster.links) {
    LinkClass bare;
    bare.name = link.name;
    bare.bandwidth = link.bandwidth;
    bare.full_duplex = link.full_duplex;
    bare.reported_bandwidth = link.reported_bandwidth;
    link = bare;
  }
  constexpr double kNoLimit = 1e18;
  for (NodeGroup& group : cluster.groups) {
    const int threads = group.cpu.threads;
    group.cpu = {.threads = threads,
                 .per_tensor = Seconds{0.0},
                 .dispatch_latency = Seconds{0.0},
                 .send_ahead = Seconds{0.0},
                 .update_rate = BytesPerSecond{kNoLimit},
                 .sum_rate = BytesPerSecond{kNoLimit}};
  }
  cluster.network.switch_latency = Seconds{0.0};
  cluster.network.background.clear();
  cluster.network.pair_bandwidth.reset();
  CollectiveCosts costs;
  costs.launch = costs.per_step_intra = costs.per_step_inter = Seconds{0.0};
  costs.channels = cluster.collective.channels;
  costs.algorithm = cluster.collective.algorithm;
  costs.nccl_version = cluster.collective.nccl_version;
  cluster.collective = costs;
  return cluster;
}

}  // namespace

BurstRows without_bursts(const Cluster& cluster, const std::vector<Probe>& probes) {
  BurstRows out{.kept = probes, .left_out = {}, .note = {}};
  const auto crosses = [&](const Probe& probe) {
    const auto places = places_of(probe, cluster);
    return probe.kind != ProbeKind::Overlap && (probe.to_server() || places.front().node != places.back().node);
  };
  if (states_burst(cluster) || std::ranges::none_of(probes, crosses)) return out;
  const Cluster bare = without_costs(cluster);
  using Kind = std::tuple<ProbeKind, int, int, int, CollectiveAlgorithm>;
  const auto kind_of = [](const Probe& p) { return Kind{p.kind, p.ranks, p.per_node, p.count, p.algorithm}; };
  std::map<Kind, double> largest_at_rate;  // bytes of the largest row that its links' rates allow
  std::vector<bool> faster;
  for (const Probe& probe : probes) {
    faster.push_back(crosses(probe) && probe.measured < kFaster * predicted_time(probe, bare));
    if (faster.back()) continue;
    double& largest = largest_at_rate[kind_of(probe)];
    largest = std::max(largest, probe.bytes);
  }
  out.kept.clear();
  double most = 0.0;
  for (std::size_t i = 0; i < probes.size(); ++i) {
    const auto found = largest_at_rate.find(kind_of(probes[i]));
    const bool burst = faster[i] && found != largest_at_rate.end() && found->second > probes[i].bytes;
    (burst ? out.left_out : out.kept).push_back(probes[i]);
    if (burst) most = std::max(most, probes[i].bytes);
  }
  if (!out.left_out.empty())
    out.note = fmt::format(
        "{} measurements of up to {} are faster than their links: token buckets pass bytes above the rate after a "
        "pause. They were not fitted; with the 'burst' of the link stated they are",
        out.left_out.size(), format_bytes(most));
  return out;
}

}  // namespace simsync::detail
