#include "sim/plan/mesh_groups.hpp"

#include <algorithm>

#include "sim/plan/compile.hpp"
#include "sim/plan/plan_writer.hpp"

namespace simsync::detail {
namespace {

/// NICs that so many of a node's GPUs use.
int nics_of(const NodeGroup& node, int ranks) {
  if (!node.nearest_nics || node.gpus == 0) return node.nics;
  return (node.nics * ranks + node.gpus - 1) / node.gpus;
}

}  // namespace

MeshGroups::MeshGroups(const Cluster& cluster, int workers)
    : cluster_(cluster), ranks_(cluster.workers(workers)), table_(cluster) {}

std::vector<int> MeshGroups::members(const ModelMesh& mesh, const Question& question) const {
  const auto [kind, stage, size, stride] = question;
  std::vector<int> out;
  const auto add = [&](int tensor, int replica, int of_stage) {
    out.push_back(mesh.rank_at({.tensor = tensor, .replica = replica, .stage = of_stage}));
  };
  switch (kind) {
    case MeshGroupKind::Tensor:
      for (int tensor = 0; tensor < mesh.tensor(); ++tensor) add(tensor, 0, stage);
      break;
    case MeshGroupKind::Replicas:
      for (int replica = 0; replica < mesh.replicas(); ++replica) add(0, replica, stage);
      break;
    case MeshGroupKind::Shard:
      for (int i = 0; i < size; ++i) add(0, i * stride, stage);
      break;
    case MeshGroupKind::ShardReplicas:
      for (int replica = 0; replica < mesh.replicas(); replica += size * stride) add(0, replica, stage);
      break;
    case MeshGroupKind::Stage:
      for (int replica = 0; replica < mesh.replicas(); ++replica)
        for (int tensor = 0; tensor < mesh.tensor(); ++tensor) add(tensor, replica, stage);
      break;
    case MeshGroupKind::Next:
      add(0, 0, stage);
      add(0, 0, (stage + 1) % mesh.stages());
      break;
  }
  return out;
}

MeshGroup MeshGroups::group(const ModelMesh& mesh, const Question& question) {
  const auto [known, fresh] = groups_.try_emplace({mesh.tensor(), mesh.stages(), question});
  if (fresh) {
    std::vector<Place> places;
    for (const int rank : members(mesh, question)) places.push_back(ranks_[static_cast<std::size_t>(rank)]);
    std::sort(places.begin(), places.end());
    known->second = {.costs = costs_of(places), .nic_share = nic_share(mesh, places)};
  }
  return known->second;
}

/// On the first of its nodes. All ranks of the node are in groups like this one.
double MeshGroups::nic_share(const ModelMesh& mesh, const std::vector<Place>& group) const {
  if (group.front().node == group.back().node) return 1.0;
  const auto on_node = [&](const std::vector<Place>& places, std::size_t end) {
    return static_cast<int>(std::count_if(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(end),
                                          [&](const Place& place) { return place.node == group.front().node; }));
  };
  const NodeGroup& node = cluster_.group_of(group.front().node);
  const int own = on_node(group, group.size());
  const int all = on_node(ranks_, static_cast<std::size_t>(mesh.ranks()));
  const double wanted = static_cast<double>(all) / own * nics_of(node, own);
  return std::min(1.0, nics_of(node, all) / wanted);
}

const GroupCosts* MeshGroups::costs_of(const std::vector<Place>& places) {
  const int first = places.front().node;
  std::vector<Place> from_first = places;
  for (Place& place : from_first) place.node -= first;
  const bool alike = cluster_.groups.size() == 1 && cluster_.network.nodes_per_leaf == 0;
  std::unique_ptr<GroupCosts>& out = costs_[{alike ? 0 : first, std::move(from_first)}];
  if (!out) out = std::make_unique<GroupCosts>(group_costs(cluster_, places));
  return out.get();
}

double MeshGroups::time(const MeshGroup& group, const CollectiveKind& kind, double bytes) const {
  return table_.time(*group.costs, kind, bytes / group.nic_share);
}

double MeshGroups::slowdown(const ModelMesh& mesh, int stage) const {
  double slowest = 0.0;
  double variation = 0.0;
  const int begin = mesh.rank_at({.tensor = 0, .replica = 0, .stage = stage});
  for (int rank = begin; rank < begin + mesh.replicas() * mesh.tensor(); ++rank) {
    const NodeGroup& node = cluster_.group_of(ranks_[static_cast<std::size_t>(rank)].node);
    slowest = std::max(slowest, node.compute_slowdown);
    variation = std::max(variation, cluster_.devices.at(node.device).compute_variation);
  }
  return variation > 0.0 ? slowest * (1.0 + variation * expected_largest(mesh.ranks())) : slowest;
}

}  // namespace simsync::detail
