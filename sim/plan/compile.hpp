// Model + Profile + Cluster + Strategy -> Plan. Everything that may be decided before a run is decided here.
#pragma once
#include "models/profile.hpp"
#include "platforms/topology.hpp"
#include "sim/plan/plan.hpp"
#include "strategies/strategy.hpp"

namespace simsync {

/// Compiles one training iteration. Deterministic. Cost: O(variables x shards), independent of the number of
/// workers except for the list of ranks.
/// @throws PlanError when the cluster has fewer GPUs than `strategy.graph.workers`, a server is not a place of the
/// cluster, or the strategy does not cover the model.
Plan compile(const Model& model, const Profile& profile, const Cluster& cluster, const Strategy& strategy);

/// Start-up and rate of one hop inside a node and between nodes, as the cluster's first nodes have them: once for each
/// of its protocols, or once without a name.
std::vector<ProtocolRates> link_rates(const Cluster& cluster, const std::vector<Place>& ranks);

/// What `auto` means with this cluster's library. @throws PlanError for a word that is no algorithm.
CollectiveAlgorithm library_algorithm(const Cluster& cluster);

/// What collectives over `ranks`, node by node, are chosen by. Cost: O(ranks).
GroupCosts group_costs(const Cluster& cluster, const std::vector<Place>& ranks);

/// Streams that one hop has: the channels of a collective between nodes, one inside a node. They are divided between
/// the two trees of a double binary tree, as NCCL's channels are, which have the neighbors of one tree each besides
/// those on the ring. One channel gives each tree half of its stream: both trees then share the one connection.
double streams_of_hop(const CollectiveCosts& costs, CollectiveAlgorithm algorithm, bool between_nodes);

/// `cluster.collective` as `protocol` has it; unchanged when the name is empty.
CollectiveCosts costs_of(const Cluster& cluster, const std::string& protocol);

/// What a collective takes before its rounds: its launch, and the pass over its payload.
Seconds collective_setup(const CollectiveCosts& costs, double bytes);

/// Whether the library of these costs runs the algorithm by itself, as it does what is asked for as Auto: only those
/// were measured.
bool is_own(const CollectiveCosts& costs, CollectiveAlgorithm algorithm);
/// Measured over modelled time of a collective over such a group, 1 where nothing near it was measured.
double ratio_of(const CollectiveCosts& costs, CollectivePrimitive primitive, const GroupShape& group, double bytes);

/// A plan of one collective over `ranks` (node by node), asked for as often as it is replayed.
/// @throws PlanError when a rank is not a place of the cluster.
Plan collective_plan(const Cluster& cluster, std::vector<Place> ranks, CollectivePrimitive primitive,
                     CollectiveAlgorithm algorithm, double bytes);

/// The group that a collective over all ranks of a plan runs in.
GroupShape group_shape(const Plan& plan);
/// Of these ranks, ascending.
GroupShape group_shape(const Plan& plan, std::span<const int> ranks);

/// Two ranks of a collective, the first of which sends to the other.
struct HopEnds {
  Place from;
  Place to;
  const std::vector<int>& gpus;  ///< of the group on the sender's node, ascending
  bool loop = false;             ///< the far end is the sender's node itself
};

/// The way of one hop of a collective, all of whose streams together reach `rate` at most. Between nodes, algorithms
/// that cross each node once (ring, tree, chain) use the NICs of all its GPUs in the group together; the others, and a
/// group of one GPU of each node, send from GPU to GPU. Inside a node these algorithms and hierarchical run on rings.
struct HopPath {
  Path path;
  BytesPerSecond rate;
};
HopPath hop_path(const Topology& topology, const CollectiveCosts& costs, CollectiveAlgorithm algorithm,
                 const HopEnds& ends);

}  // namespace simsync
