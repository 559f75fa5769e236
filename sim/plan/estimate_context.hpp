// What estimates of all strategies for a model on a cluster share. Private to sim/plan.
#pragma once
#include <algorithm>
#include <map>
#include <vector>

#include "sim/plan/collective_table.hpp"
#include "sim/plan/compile.hpp"
#include "sim/plan/step_estimate.hpp"

namespace simsync::detail {

/// How bytes get from one place to another, alone.
struct Wire {
  double rate = 1e18;    ///< bytes per second of the narrowest link
  double cap = 1e18;     ///< of one stream
  double latency = 0.0;  ///< s, without bytes
  double message = 0.0;  ///< s, more for every message
  double half = 0.0;     ///< bytes by which every message is dearer
};

struct EstimateContext {
  EstimateContext(const Model& m, const Profile& p, const Cluster& c, int workers);

  /// CollectiveTable::time.
  [[nodiscard]] double collective(const GroupCosts& costs, CollectivePrimitive primitive, CollectiveAlgorithm algorithm,
                                  double bytes) const {
    return collectives_.time(costs, {.primitive = primitive, .algorithm = algorithm}, bytes);
  }
  /// Of a shard group, consecutive ranks, or of a replica group: every rank that is a multiple of so many.
  [[nodiscard]] const GroupCosts& shard_group(int size) const;
  [[nodiscard]] const GroupCosts& replica_group(int distance) const;
  [[nodiscard]] int node_count() const { return static_cast<int>(nodes.size()); }

  const Model& model;
  const Profile& profile;
  const Cluster& cluster;
  std::vector<Place> ranks;
  std::vector<int> nodes;  ///< with ranks
  int per_node = 1;        ///< most ranks of a node
  double slowdown = 1.0;   ///< of the slowest rank, with what it varies by
  std::vector<VariableId> backward_order;
  std::vector<std::vector<VariableId>> variables_of;  ///< by layer, in backward order
  std::vector<double> forward;                        ///< s by layer
  std::vector<double> backward;                       ///< with what is computed again
  double update = 0.0;
  GroupCosts all;                 ///< of collectives over all ranks
  GroupCosts inside;              ///< over the ranks of the fullest node
  Wire copy;                      ///< device to host
  Wire between;                   ///< host to host
  std::vector<double> link_rate;  ///< by node of the cluster: of its network, one direction
  CpuClass host;                  ///< slowest of the workers'
  CollectiveAlgorithm library = CollectiveAlgorithm::Ring;

private:
  mutable std::map<int, GroupCosts> shard_groups_;
  mutable std::map<int, GroupCosts> replica_groups_;
  CollectiveTable collectives_;
};

/// A resource that serves one thing after another.
struct Resource {
  double free = 0.0;
  double busy = 0.0;
  /// Work that may begin at `from` and keeps it busy for `length`; its end. Idle gaps are not filled by later work.
  double serve(double from, double length) {
    free = std::max(free, from) + length;
    busy += length;
    return free;
  }
};

/// What moves through resources in pieces. Four pieces of 1 s each are through one resource at 1, 2, 3 and 4 s: `first`
/// is 1, when the next resource may begin with the first of them, and `last` 4, when the last has left this one.
struct Moving {
  double first = 0.0;
  double last = 0.0;

  /// `length` on a resource for all `pieces` together, and `latency` besides.
  void pass(Resource& resource, double length, double pieces, double latency = 0.0) {
    const double begin = std::max(first, resource.free);
    const double piece = length / pieces;
    const double end = std::max(resource.serve(first, length), last + piece);
    first = begin + piece + latency;
    last = end + latency;
  }
  /// The same on something that nobody else uses.
  void pass_alone(double length, double pieces, double latency = 0.0) {
    Resource own;
    pass(own, length, pieces, latency);
  }
};

/// While servers send or receive, their links leave a collective less than it has alone.
struct SharedWire {
  double begin = 0.0;
  double end = 0.0;
  double share = 1.0;  ///< of the collective's rate that it has meanwhile
};

/// Of one link: in order, without overlap.
using SharedWires = std::vector<SharedWire>;

/// When a hop that takes `length` alone ends that begins at `from`.
double end_beside(const SharedWires& shared, double from, double length);

Evaluation estimate_step(const EstimateContext& context, const Strategy& strategy);

}  // namespace simsync::detail
