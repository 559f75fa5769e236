// One measurement of a cluster's network or servers: what ran, and how long it took.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "platforms/cluster.hpp"
#include "sim/plan/plan.hpp"

namespace simsync {

enum class ProbeKind : std::uint8_t {
  AllReduce,      ///< `bytes` in every rank's buffer
  AllGather,      ///< `bytes` contributed by every rank
  ReduceScatter,  ///< `bytes` in every rank's buffer
  Push,           ///< every rank pushes `count` tensors of `bytes` to one server, until all are received and summed
  Pull,           ///< every rank reads `count` tensors of `bytes` from one server, until all have arrived
  Message,        ///< `count` messages of `bytes` from the first rank to the second
  /// Every rank computes for `compute` while `count` all-reduces of `bytes`, one after another, start at the same time;
  /// what the compute of the slowest rank takes, from its start to its end, however long the all-reduces go on.
  Overlap,
  /// The first rank reads `count` tensors of 1 KiB from one server, one after another, while every other rank pushes a
  /// tensor of `bytes` there; what the reads take, however long the pushes go on.
  Reads,
};
const char* name_of(ProbeKind kind);
/// Whether it is about some ops only (Op::timed), while others go on.
bool times_some_ops(ProbeKind kind);

struct Probe {
  ProbeKind kind = ProbeKind::AllReduce;
  int ranks = 2;
  int per_node = 0;  ///< ranks on a node; 0: as many as a node has devices
  double bytes = 0.0;
  int count = 1;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::Auto;
  Seconds compute;  ///< Overlap: what each rank computes, alone, on a device of speed 1
  Seconds measured;
  double repeat = 0.0;  ///< standard deviation of its repetitions as a share of `measured`; 0: not known
  std::string where;    ///< file:line, for messages

  /// Nothing but one collective.
  [[nodiscard]] bool collective() const { return kind <= ProbeKind::ReduceScatter; }
  [[nodiscard]] bool to_server() const {
    return kind == ProbeKind::Push || kind == ProbeKind::Pull || kind == ProbeKind::Reads;
  }
};

/// What is measured, as messages say it.
std::string describe(const Probe& probe);
/// The devices of its ranks, filled node by node. @throws PlanError when the cluster cannot grow to them.
std::vector<Place> places_of(const Probe& probe, const Cluster& cluster);
/// `cluster` with the nodes that the probes need, servers included: a server is a host of its own, the first one
/// without devices when the cluster has such a host, else the node after the last rank's.
Cluster grown_for(const Cluster& cluster, const std::vector<Probe>& probes);
/// The probe as a plan of its own for a cluster that grown_for has made. Its iterations do not overlap: collectives
/// follow each other directly; all others begin when all of the iteration before have ended, and the message that tells
/// so is not part of the probe.
Plan plan_of(const Probe& probe, const Cluster& cluster);

/// Times of collectives in closed form (collective_time and the setup), when nothing else is under way.
class CollectiveEstimates {
public:
  /// `cluster`, which grown_for has made, is kept by reference.
  explicit CollectiveEstimates(const Cluster& cluster) : cluster_(cluster) {}
  /// Of a collective. @throws PlanError when the cluster cannot grow to its ranks.
  [[nodiscard]] Seconds of(const Probe& probe);

private:
  const Cluster& cluster_;
  std::map<std::pair<int, int>, GroupCosts> groups_;  ///< by ranks, and ranks per node
};

}  // namespace simsync
