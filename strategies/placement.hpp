// Which server gets which shard.
#pragma once
#include <cstdint>
#include <vector>

#include "platforms/cluster.hpp"

namespace simsync {

/// Hosts that may serve parameters, in node order.
struct Hosts {
  std::vector<Place> workers;                    ///< of the nodes that hold the workers
  std::vector<Place> cpu_only;                   ///< of the nodes without GPUs
  [[nodiscard]] std::vector<Place> all() const;  ///< both, in node order (AutoDist's "all CPU devices")
};
/// @throws PlanError when the cluster has fewer than `workers` GPUs.
Hosts hosts_of(const Cluster& cluster, int workers);

/// Loads of servers while shards are dealt out. Ties go to the first server. Sizes are in bytes.
class Placement {
public:
  /// `weights`: share of the load that each server should get; empty: equal shares.
  explicit Placement(std::vector<Place> servers, std::vector<double> weights = {});

  /// The server with the fewest bytes (AutoDist's load balancing); charged with `bytes`.
  Place least_loaded(double bytes);
  /// The next server in turn; the turn continues over calls.
  Place next_in_turn();
  /// Sorts the servers by load once and deals `shards` in that order, again from the front when there are more
  /// shards than servers; each server is charged bytes / shards per shard (AutoDist's PartitionedPS).
  std::vector<Place> deal(std::size_t shards, double bytes);
  /// The server that is furthest below its share of what has been placed so far, this shard included (AutoSync's
  /// deficit rule without its softmax, which is arg-max for shards of megabytes). A share of 0 gets nothing.
  Place largest_deficit(double bytes);

  [[nodiscard]] const std::vector<Place>& servers() const { return servers_; }
  [[nodiscard]] const std::vector<double>& loads() const { return loads_; }  ///< bytes, by server

private:
  std::vector<Place> servers_;
  std::vector<double> shares_;  ///< sums to 1
  std::vector<double> loads_;
  double total_ = 0.0;
  std::size_t turn_ = 0;
};

/// NIC bandwidth of each server's node: weights for largest_deficit. @throws PlanError for an unknown link class.
std::vector<double> nic_bandwidths(const Cluster& cluster, const std::vector<Place>& servers);

}  // namespace simsync
