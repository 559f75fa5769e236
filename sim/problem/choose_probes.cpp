#include "sim/problem/choose_probes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.hpp"
#include "base/parse_units.hpp"

namespace simsync {
namespace {

constexpr double kKiB = 1024.0;
// What two processors take to start, connect and end the processes of a probe.
constexpr Seconds kStart{0.1};
constexpr Seconds kStartOfProcess{0.28};
constexpr Seconds kLongest{0.5};
constexpr Seconds kShortest{0.03};
constexpr double kLoaded = 0.8;  ///< part of the longest time that pushes beside reads take
constexpr int kMostIterations = 40;
constexpr int kLeastIterations = 7;

/// Payload rate of the slowest NIC.
double slowest_rate(const Cluster& cluster) {
  double rate = 0.0;
  for (const NodeGroup& group : cluster.groups) {
    const auto link = cluster.links.find(group.nic_link);
    if (link == cluster.links.end()) continue;
    const double own = link->second.efficiency * link->second.bandwidth.value() * group.nics / group.nic_slowdown;
    rate = rate == 0.0 ? own : std::min(rate, own);
  }
  if (rate == 0.0) throw PlanError(fmt::format("cluster '{}' has no network to measure", cluster.name));
  return rate;
}

/// Writes down probes whose nominal time is at most `longest`.
class Chooser {
public:
  Chooser(const Cluster& cluster, Seconds longest) : cluster_(cluster), longest_(longest) {
    for (const NodeGroup& group : cluster.groups) (group.gpus > 0 ? workers_ : servers_) += group.count;
    if (workers_ < 2) throw PlanError(fmt::format("cluster '{}' has less than two hosts to measure", cluster.name));
  }

  std::vector<Probe> choose() {
    messages();
    for (const int ranks : std::set<int>{2, workers_})
      for (const auto algorithm : {CollectiveAlgorithm::Ring, CollectiveAlgorithm::HalvingDoubling})
        all_reduces(ranks, algorithm);
    // A server is a host of its own: the last worker's, where there is none without a device.
    const int most = servers_ > 0 ? workers_ : workers_ - 1;
    for (const int ranks : std::set<int>{1, most})
      for (const ProbeKind kind : {ProbeKind::Push, ProbeKind::Pull}) tensors(kind, ranks);
    for (const int ranks : std::set<int>{1, std::min(2, most), std::min(3, most), most}) reads(ranks);
    overlaps();
    return std::move(probes_);
  }

private:
  /// False when it would take too long.
  bool add(ProbeKind kind, int ranks, double bytes, int count,
           CollectiveAlgorithm algorithm = CollectiveAlgorithm::Auto) {
    Probe probe = of(kind, ranks, bytes, count);
    probe.algorithm = algorithm;
    if (nominal_time(probe, cluster_) > longest_) return false;
    probes_.push_back(std::move(probe));
    return true;
  }
  static Probe of(ProbeKind kind, int ranks, double bytes, int count) {
    Probe probe;
    probe.kind = kind;
    probe.ranks = ranks;
    probe.per_node = 1;
    probe.bytes = bytes;
    probe.count = count;
    return probe;
  }
  void messages() {
    for (double bytes = kKiB; add(ProbeKind::Message, 2, bytes, 1); bytes *= 8.0) {
    }
    for (double bytes = kKiB; bytes <= kKiB * kKiB && add(ProbeKind::Message, 2, bytes, 32); bytes *= 8.0) {
    }
  }
  void all_reduces(int ranks, CollectiveAlgorithm algorithm) {
    for (double bytes = 4.0 * kKiB; add(ProbeKind::AllReduce, ranks, bytes, 1, algorithm); bytes *= 4.0) {
    }
  }
  void tensors(ProbeKind kind, int ranks) {
    for (double bytes = 4.0 * kKiB; add(kind, ranks, bytes, 1); bytes *= 16.0) {
    }
    for (double bytes = 4.0 * kKiB; add(kind, ranks, bytes, 16); bytes *= 16.0) {
    }
    (void)add(kind, ranks, 4.0 * kKiB, 64);
    // The shorter on the wire, the more threads of the server are busy with them.
    if (ranks > 1) (void)add(kind, ranks, kKiB, 64);
  }
  /// Alone, beside pushes of one host, which its own link holds up, and of several, which the server's does. They go
  /// on, by nominal rates, for longer than the reads are likely to.
  void reads(int ranks) {
    const double bytes =
        ranks > 1 ? std::floor(kLoaded * longest_.value() * slowest_rate(cluster_) / (ranks - 1)) : 1.0;
    (void)add(ProbeKind::Reads, ranks, bytes, 16);
  }
  /// Small and large all-reduces that go on, by nominal rates, for twice as long as the compute: then what it takes
  /// says how much they slow it, whatever they reach.
  void overlaps() {
    constexpr int kMost = 64;
    constexpr double kBeyond = 2.0;
    for (const double bytes : {16.0 * kKiB, 256.0 * kKiB}) {
      Probe probe = of(ProbeKind::Overlap, workers_, bytes, 1);
      probe.algorithm = CollectiveAlgorithm::Ring;
      probe.count = static_cast<int>(std::clamp(longest_ / nominal_time(probe, cluster_), 1.0, double{kMost}));
      const Seconds all = nominal_time(probe, cluster_);
      if (all > longest_) continue;
      probe.compute = all / kBeyond;
      probes_.push_back(std::move(probe));
    }
  }

  const Cluster& cluster_;
  Seconds longest_;
  int workers_ = 0;
  int servers_ = 0;
  std::vector<Probe> probes_;
};

/// All probes, each repeated for about `each`.
std::vector<ProbeRun> repeated(const std::vector<Probe>& probes, const Cluster& cluster, Seconds each) {
  std::vector<ProbeRun> out;
  for (const Probe& probe : probes) {
    const Seconds once = nominal_time(probe, cluster);
    ProbeRun run{.probe = probe, .expected = {}};
    const double fit = std::floor(each / once);
    run.iterations = static_cast<int>(std::clamp(fit, double{kLeastIterations}, double{kMostIterations}));
    const int processes = probe.ranks + (probe.to_server() ? 1 : 0);
    run.expected = kStart + static_cast<double>(processes) * kStartOfProcess +
                   static_cast<double>(run.warm_up + run.iterations) * once;
    out.push_back(std::move(run));
  }
  return out;
}

}  // namespace

Seconds nominal_time(const Probe& probe, const Cluster& cluster) {
  constexpr Seconds kRound{100e-6};
  constexpr Seconds kTensor{20e-6};
  const double rate = slowest_rate(cluster);
  if (probe.kind == ProbeKind::Reads)
    return std::max(probe.count * (kRound + kTensor), (probe.ranks - 1) * Seconds{probe.bytes / rate});
  if (!probe.collective() && probe.kind != ProbeKind::Overlap) {
    const int senders = probe.kind == ProbeKind::Message ? 1 : probe.ranks;
    const auto tensors = static_cast<double>(senders * probe.count);
    return kRound + tensors * (kTensor + Seconds{probe.bytes / rate});
  }
  const double share = 2.0 * (probe.ranks - 1) / probe.ranks;
  const Seconds all = probe.count * (2.0 * (probe.ranks - 1) * kRound + Seconds{share * probe.bytes / rate});
  return std::max(all, probe.compute);
}

Seconds expected_time(const std::vector<ProbeRun>& runs) {
  Seconds sum;
  for (const ProbeRun& run : runs) sum += run.expected;
  return sum;
}

std::vector<ProbeRun> choose_probes(const Cluster& cluster, Seconds budget) {
  std::vector<ProbeRun> least;
  for (Seconds longest = kLongest; longest >= kShortest; longest = 0.5 * longest) {
    const auto probes = Chooser(cluster, longest).choose();
    for (Seconds each{1.0}; each > Seconds{0.05}; each = 0.5 * each) {
      least = repeated(probes, cluster, each);
      if (expected_time(least) <= budget) return least;
    }
  }
  throw InputError(fmt::format("{} probes of cluster '{}' take about {}, more than the budget of {}", least.size(),
                               cluster.name, format_seconds(expected_time(least)), format_seconds(budget)));
}

}  // namespace simsync
