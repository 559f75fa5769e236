// NCCL's choice between ring and double binary tree and between its protocols, by its own model of the time.
//
// Of five releases: 2.4, which takes the tree up to a threshold, 2.6, 2.7, 2.14 and 2.30 (nccl_tables.hpp). Before 2.4
// there were rings only.
//
// It rests on what NCCL can see: kinds of links, their nominal bandwidth, numbers of GPUs, nodes and NICs. It knows
// nothing of what one TCP stream reaches or of what a collective takes on this cluster, so the algorithm need not be
// the fastest.
#pragma once
#include <optional>
#include <vector>

#include "base/units.hpp"
#include "platforms/cluster.hpp"
#include "sim/plan/group_shape.hpp"
#include "strategies/synchronizer.hpp"

namespace simsync {

enum class NcclProtocol : std::uint8_t { LL, LL128, Simple };
const char* name_of(NcclProtocol protocol);

/// What the search in the topology finds: channels, and GB/s of each of them.
struct NcclGraph {
  int channels = 1;
  double intra = 0.0;  ///< inside a node
  double inter = 0.0;  ///< between nodes
};

struct NcclView {
  int version = kNewestNccl;  ///< CollectiveCosts::nccl_version
  int generation = 0;         ///< row of the tables: compute capability 7 and below, 8, 9, 10
  bool nvlink = false;
  bool ll128 = false;  ///< on by default: from compute capability 7 on, NVLink in the node, NIC beside the GPU
  NcclGraph ring;
  NcclGraph tree;
};

/// What NCCL finds for `ranks`, which lie node by node. Nodes are taken to be like the first one, CPUs to be Intel's.
/// It stands for a search in the topology: as many channels as the node has NICs (or NVLink bandwidth for), each with
/// the largest bandwidth of NCCL's list that NIC and GPU links have. NVLS, CollNet and PAT are left out.
NcclView nccl_view(const Cluster& cluster, const std::vector<Place>& ranks);

/// A collective as NCCL asks about it.
struct NcclCall {
  CollectivePrimitive primitive = CollectivePrimitive::AllReduce;
  int ranks = 2;
  int nodes = 1;
  double bytes = 0.0;  ///< payload; of an all-gather what one rank contributes
};

/// NCCL's estimate; none where it does not run that protocol, or anything but ring and double binary tree.
std::optional<Seconds> nccl_time(const NcclView& view, const NcclCall& call, CollectiveAlgorithm algorithm,
                                 NcclProtocol protocol);

struct NcclChoice {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::Ring;
  NcclProtocol protocol = NcclProtocol::Simple;
  Seconds time;  ///< by NCCL's model
};

/// The least nccl_time; the tree of equals.
NcclChoice nccl_choice(const NcclView& view, const NcclCall& call);

}  // namespace simsync
