// Workers that go round between their own compute and the servers that all share, in closed form.
//
// A closed queueing network of one class: `delay` is what a round takes where nobody waits, and each station serves the
// rounds' demands one after another. Exact mean value analysis for exponential service, or any service shared by all
// who are there; rounds whose service never varies wait less and come closer to the bound.
#pragma once
#include <string>
#include <vector>

#include "platforms/cluster.hpp"
#include "sim/plan/plan.hpp"

namespace simsync {

/// Something that serves one round at a time.
struct Station {
  std::string name;  ///< of a Link, or `node4:cpu0 threads`
  Seconds demand;    ///< of one round
  friend bool operator==(const Station&, const Station&) = default;
};

struct ClosedNetwork {
  Seconds delay;
  std::vector<Station> stations;

  [[nodiscard]] Seconds round() const;  ///< of one worker alone
  /// The station with the largest demand; nullptr when there is none.
  [[nodiscard]] const Station* bottleneck() const;
};

/// Rounds per second of 1, 2 ... `workers` workers together: R_j(n) = S_j (1 + Q_j(n-1)), X(n) = n / (Z + sum R_j),
/// Q_j(n) = X(n) R_j(n).
std::vector<double> throughput(const ClosedNetwork& network, int workers);
/// No rule of service reaches more: min(n / (Z + sum S_j), 1 / max S_j).
double throughput_bound(const ClosedNetwork& network, int workers);
/// The number of workers beyond which the bottleneck bounds the throughput, if one alone takes `alone` for a step:
/// alone / max S_j. Infinite without a station.
double saturation(const ClosedNetwork& network, Seconds alone);

/// The network that a plan's rounds go through when nothing of a worker overlaps with anything else of it: what one
/// rank computes, copies and waits for latencies is the delay; bytes through the NIC of each server are two stations,
/// one for each direction, and the work of each server's threads is one, with m threads as one of demand / m and a
/// delay of the rest; an update of all workers' gradients together is shared among their rounds.
/// @throws PlanError when it has collectives, steps without the latest workers, several workers on a node, or a server
/// on a worker's node.
ClosedNetwork closed_network(const Plan& plan, const Cluster& cluster);

}  // namespace simsync
