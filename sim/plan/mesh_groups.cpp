#include "sim/plan/mesh_groups.hpp"

#include <algorithm>
#include <set>

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

MeshGroups::Members MeshGroups::members(const ModelMesh& mesh, const Question& question) const {
  std::map<int, std::vector<Place>> out;
  const auto add = [&](int group, const MeshPlace& place) {
    out[group].push_back(ranks_[static_cast<std::size_t>(mesh.rank_at(place))]);
  };
  const int width = std::max(1, question.size * question.stride);
  for (int replica = 0; replica < mesh.replicas(); ++replica)
    for (int tensor = 0; tensor < mesh.tensor(); ++tensor) {
      const MeshPlace place{.tensor = tensor, .replica = replica, .stage = question.stage};
      const int in_shard = replica % width;
      switch (question.kind) {
        case MeshGroupKind::Tensor:
          add(replica, place);
          break;
        case MeshGroupKind::Replicas:
          add(tensor, place);
          break;
        case MeshGroupKind::Shard:
          add((replica / width * question.stride + in_shard % question.stride) * mesh.tensor() + tensor, place);
          break;
        case MeshGroupKind::ShardReplicas:
          add(in_shard * mesh.tensor() + tensor, place);
          break;
        case MeshGroupKind::Stage:
          add(0, place);
          break;
        case MeshGroupKind::Pair:
        case MeshGroupKind::TiedPair:
          add(replica * mesh.tensor() + tensor, place);
          add(replica * mesh.tensor() + tensor, {.tensor = tensor, .replica = replica, .stage = question.other});
          break;
      }
    }
  Members sorted;
  for (auto& [group, places] : out) {
    std::sort(places.begin(), places.end());
    sorted.push_back(std::move(places));
  }
  return sorted;
}

std::vector<std::pair<const NodeGroup*, int>> MeshGroups::shape_of(const std::vector<Place>& places) const {
  std::vector<std::pair<const NodeGroup*, int>> out;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (i == 0 || places[i].node != places[i - 1].node) out.emplace_back(&cluster_.group_of(places[i].node), 0);
    ++out.back().second;
  }
  return out;
}

const MeshGroup& MeshGroups::group(const ModelMesh& mesh, const Question& question) {
  const auto [known, fresh] = groups_.try_emplace({mesh.tensor(), mesh.stages(), question});
  if (!fresh) return known->second;
  std::set<std::vector<std::pair<const NodeGroup*, int>>> shapes;
  for (const std::vector<Place>& places : members(mesh, question))
    if (shapes.insert(shape_of(places)).second) {
      known->second.shapes.push_back(shares_of(mesh, question, places, *costs_of(places)));
    }
  return known->second;
}

/// On the first of its nodes, where all ranks are in groups like this one, or those of its stage alone. A stream that
/// has a limit of its own leaves a part of its NIC to the others.
MeshGroup::Shape MeshGroups::shares_of(const ModelMesh& mesh, const Question& question, const std::vector<Place>& group,
                                       const GroupCosts& costs) const {
  const int first = group.front().node;
  if (first == group.back().node) return {.costs = &costs};
  const auto on_first = [&](const Place& place) { return place.node == first; };
  const auto own = static_cast<int>(std::count_if(group.begin(), group.end(), on_first));
  const bool of_stage = question.kind == MeshGroupKind::TiedPair;
  const int begin = of_stage ? mesh.rank_at({.tensor = 0, .replica = 0, .stage = question.stage}) : 0;
  const int count = of_stage ? mesh.replicas() * mesh.tensor() : mesh.ranks();
  const auto all = static_cast<int>(std::count_if(ranks_.begin() + begin, ranks_.begin() + begin + count, on_first));
  const LinkRates& rates = costs.protocols.front().rates;
  const double used = rates.rate_inter.value() / rates.rate_wire.value();
  const NodeGroup& node = cluster_.group_of(first);
  const auto share = [&](double of_nics) {
    const double wanted = of_nics * static_cast<double>(all) / own * nics_of(node, own);
    return std::min(1.0, nics_of(node, all) / wanted);
  };
  return {.costs = &costs, .nic_share = share(used), .nic_share_all_to_all = share(1.0)};
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
  double slowest = 0.0;
  const bool all_to_all = kind.primitive == CollectivePrimitive::AllToAll;
  for (const MeshGroup::Shape& shape : group.shapes)
    slowest = std::max(
        slowest, table_.time(*shape.costs, kind, bytes / (all_to_all ? shape.nic_share_all_to_all : shape.nic_share)));
  return slowest;
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
