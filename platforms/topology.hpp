// Links of the nodes that take part, numbered, and the way between any two places.
#pragma once
#include <string>
#include <vector>

#include "platforms/cluster.hpp"

namespace simsync {

using LinkId = int;

/// One direction of one physical link.
struct Link {
  std::string name;           ///< `node3/nic-out`, `node0/gpu2/pcie-in`, `leaf1/up`
  BytesPerSecond bandwidth;   ///< payload: nominal x efficiency x (1 - background)
};

/// What a transfer crosses.
struct Path {
  std::vector<LinkId> links;      ///< in order; empty when source and destination share a memory
  Seconds latency;                ///< one way, all links
  BytesPerSecond stream_cap;      ///< most that one stream reaches; infinite when nothing caps it
  Seconds message_cost;           ///< fixed cost per message
  Bytes half_size;                ///< largest half_size on the way
};

/// Immutable. Cost: O(nodes x links per node) memory; `path` is O(links on the way).
class Topology {
public:
  /// Numbers the links of nodes 0 ... nodes-1 of `cluster`. @throws PlanError when it has fewer nodes.
  Topology(const Cluster& cluster, int nodes);
  [[nodiscard]] const std::vector<Link>& links() const { return links_; }
  [[nodiscard]] int nodes() const { return nodes_; }
  [[nodiscard]] const Cluster& cluster() const { return cluster_; }

  /// GPU to GPU, GPU to host, host to GPU or host to host, in one node or across the network. Between nodes a
  /// GPU's traffic crosses its PCIe links (host memory too unless `gpu_direct`), its node's NICs and the leaf
  /// uplinks when both ends are under different leaves.
  [[nodiscard]] Path path(Place from, Place to) const;

private:
  struct NodeLinks;
  Cluster cluster_;
  int nodes_;
  std::vector<Link> links_;
  std::vector<NodeLinks> node_links_;
  std::vector<std::pair<LinkId, LinkId>> leaf_links_;  ///< (up, down) by leaf
};

}  // namespace simsync
