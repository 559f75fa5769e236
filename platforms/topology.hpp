// Links of the nodes that take part, numbered, and the way between any two places.
#pragma once
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "platforms/cluster.hpp"
#include "platforms/topology_layout.hpp"

namespace simsync {

using LinkId = int;

/// One direction of one physical link (both directions when its class is half-duplex).
struct Link {
  std::string name;          ///< `node3/nic-out`, `node0/gpu2/pcie-in`, `leaf1/up`
  BytesPerSecond bandwidth;  ///< payload: nominal x efficiency x (1 - background)
  PortService service;
};

/// What a transfer crosses.
struct Path {
  std::vector<LinkId> links;  ///< in order; empty when source and destination share a memory
  Seconds latency;            ///< one way, all links
  /// Most that one stream reaches: the smallest per_flow_cap on the way, and one NIC where a node has several.
  BytesPerSecond stream_cap{std::numeric_limits<double>::infinity()};
  Seconds message_cost;  ///< fixed cost per message: sum over the links
  Bytes half_size;       ///< largest half_size on the way
};

/// How many GPUs of a node take part in a job, by node number.
using GpusInUse = std::map<int, int>;
/// The GPUs among some places.
GpusInUse gpus_in_use(const std::vector<Place>& places);
/// NICs of a node of which `gpus` GPUs take part (NodeGroup::nearest_nics). All of them where none does: its host
/// sends.
int nics_in_use(const NodeGroup& group, int gpus);

/// Immutable. Cost: O(nodes x links per node) time and memory, and O(nodes^2) with a `pair_bandwidth`; `path` is
/// O(links on the way) and allocates nothing but the vector that it returns.
class Topology {
public:
  /// Numbers the links of nodes 0 ... nodes-1 of `cluster`. @throws PlanError when it has fewer nodes or names a
  /// link class that it does not describe.
  Topology(const Cluster& cluster, int nodes);
  /// The same for chosen nodes only, so that a few representatives of a large cluster stay cheap. Node numbers
  /// keep their meaning: `path` takes the cluster's numbers. Leaf uplinks have their full capacity whatever the
  /// number of chosen nodes below. A node that `gpus` does not name has all of its NICs.
  /// @throws PlanError also for a node named twice.
  Topology(const Cluster& cluster, std::vector<int> node_numbers, GpusInUse gpus = {});

  [[nodiscard]] const std::vector<Link>& links() const { return links_; }
  [[nodiscard]] int nodes() const { return static_cast<int>(nodes_.size()); }  ///< how many take part
  [[nodiscard]] const Cluster& cluster() const { return cluster_; }
  /// NICs of a node that takes part. @throws PlanError when it does not.
  [[nodiscard]] int nics(int node) const { return entry({node, -1}).nics; }
  /// The NICs of some GPUs of a node.
  struct NicsOf {
    bool several = false;  ///< not the rail of a single NIC
    BytesPerSecond rate;   ///< each way, together
  };
  /// @throws PlanError as path() does.
  [[nodiscard]] NicsOf nics_of(int node, const std::vector<int>& gpus) const;

  /// GPU to GPU, GPU to host, host to GPU or host to host, in one node or across the network.
  ///
  /// In a node: GPU ports when the fabric has a `gpu_link` and `peer_to_peer`, and its `gpu_mesh` joins the two, whose
  /// links are then all that a stream has; else the two PCIe links, with the
  /// switch uplinks when the switches differ and the socket link when the sockets differ. Without `peer_to_peer`
  /// the way leads through the switch uplinks and host memory. GPU to host: PCIe link, switch uplink, memory.
  /// Between nodes: GPU to host (or, with `gpu_direct`, the PCIe link, and the switch uplink when the node has
  /// fewer NICs than switches), NIC out, the link of the two nodes when the network has a `pair_bandwidth`, the leaf
  /// uplinks when the leaves differ, NIC in, and the mirror image.
  /// All NICs of a node that are in use count as one link of their total bandwidth. Where a node has several and
  /// GPUs use the nearest (NodeGroup::nearest_nics), what a GPU sends or receives also crosses its rail, which is that
  /// NIC, or those NICs: GPUs of one rail share its rate, others do not.
  /// @throws PlanError for a node that takes no part, a GPU that does not exist, or a node without a NIC.
  [[nodiscard]] Path path(Place from, Place to) const;

  /// The way of one hop of a ring through these GPUs of a node, two of which are `from` and `to`. In a mesh the ring
  /// runs at the rate of all the rings that these GPUs have (GpuMesh::rings), or on PCIe where they have none; else it
  /// is path(). @throws PlanError as path() does.
  [[nodiscard]] Path ring_path(Place from, Place to, const std::vector<int>& gpus) const;

  /// The way from one node's place to another's across the network, also when both are on one node: then what
  /// leaves the node comes back into it, as for a representative of alike nodes. @throws PlanError as path() does.
  [[nodiscard]] Path network_path(Place from, Place to) const;

  /// What one node sends to another when its GPUs share the work, as a collective with one ring per NIC does: the
  /// links of path() between GPUs of these nodes without any single GPU's PCIe links and switch uplinks, whose
  /// fixed costs stay. `stream_cap` is that of one ring. With from = to what leaves the node comes back into it, as
  /// in network_path(). @throws PlanError as path() does.
  [[nodiscard]] Path between_nodes(int from, int to) const;

  /// A GPU's own links whose rate falls while it computes, each with the rate that is then left. Empty for most.
  [[nodiscard]] std::vector<std::pair<LinkId, BytesPerSecond>> links_beside_compute(Place gpu) const;
  /// The node that a link belongs to; -1: to several, as leaf uplinks and links of pairs of nodes do.
  [[nodiscard]] int node_of(LinkId link) const;

private:
  friend class TopologyBuilder;
  struct NodeEntry {
    int number = 0;  ///< in the cluster
    int group = 0;
    LinkId first = 0;
    int nics = 1;  ///< in use
  };
  [[nodiscard]] const NodeEntry& entry(Place place) const;
  void add_to_host(Path& path, const NodeEntry& node, int gpu, bool to_nic) const;
  void add_from_host(Path& path, const NodeEntry& node, int gpu, bool from_nic) const;
  /// `links`: of a mesh, that a stream has; 0: no way over ports.
  void add_between_gpus(Path& path, const NodeEntry& node, std::pair<int, int> gpus, int links) const;
  void add_across_network(Path& path, Place from, Place to) const;
  [[nodiscard]] LinkId link_of_pair(const NodeEntry& one, const NodeEntry& other) const;

  Cluster cluster_;
  GpusInUse gpus_;
  std::vector<Link> links_;
  std::vector<detail::NodeLayout> layouts_;  ///< by group
  std::vector<NodeEntry> nodes_;             ///< by rising number
  std::vector<LinkId> leaf_up_;              ///< by leaf; -1: no chosen node below. The down link follows it.
  LinkId first_pair_ = -1;                   ///< of the links of pairs of nodes, by rising numbers; -1: none
};

}  // namespace simsync
