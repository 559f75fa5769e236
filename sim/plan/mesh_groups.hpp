// Groups of a mesh and what their collectives take, for estimates. Private to sim/plan.
#pragma once
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/plan/collective_table.hpp"
#include "strategies/model_parallel.hpp"

namespace simsync::detail {

/// Groups that work at the same time, one of each shape: how many ranks are on which kind of node.
struct MeshGroup {
  struct Shape {
    const GroupCosts* costs = nullptr;
    /// What one of them has of the NICs that it uses, 0 to 1: others of the same node use them, too.
    double nic_share = 1.0;
    double nic_share_all_to_all = 1.0;  ///< where each rank has streams to all others, whose limits do not bind
  };
  std::vector<Shape> shapes;
  [[nodiscard]] int ranks() const { return shapes.front().costs->shape.ranks(); }
};

/// Which ranks of a stage belong together.
enum class MeshGroupKind : std::uint8_t {
  Tensor,         ///< that split layers
  Replicas,       ///< that hold the same variables
  Shard,          ///< `size` of these, each `stride` behind the one before: they share out state or experts
  ShardReplicas,  ///< of each `size` such one, which hold the same share
  Stage,          ///< all
  Pair,           ///< a rank of it and the same of another stage, while other stages have such pairs, too
  TiedPair,       ///< the same, and no other stage has any: those that hold a tied table
};

class MeshGroups {
public:
  /// Keeps a reference. @throws PlanError when the cluster has fewer GPUs than `workers`.
  MeshGroups(const Cluster& cluster, int workers);

  /// Which group of a stage. Kept as long as this lives.
  struct Question {
    MeshGroupKind kind = MeshGroupKind::Replicas;
    int stage = 0;
    int size = 0;    ///< of Shard and ShardReplicas
    int stride = 1;  ///< expert-parallel ranks, where these have the same experts
    int other = 0;   ///< stage of Pair and TiedPair
    friend auto operator<=>(const Question&, const Question&) = default;
  };
  const MeshGroup& group(const ModelMesh& mesh, const Question& question);
  /// s, of the slowest, alone but for the others that share its NICs.
  [[nodiscard]] double time(const MeshGroup& group, const CollectiveKind& kind, double bytes) const;
  /// By how much the slowest rank of a stage is slower than the profile's device, with what it varies by.
  [[nodiscard]] double slowdown(const ModelMesh& mesh, int stage) const;

private:
  using Members = std::vector<std::vector<Place>>;
  /// Of all such groups of a stage, each sorted.
  [[nodiscard]] Members members(const ModelMesh& mesh, const Question& question) const;
  /// How many ranks a group has on nodes of which kind, node by node.
  [[nodiscard]] std::vector<std::pair<const NodeGroup*, int>> shape_of(const std::vector<Place>& places) const;
  [[nodiscard]] MeshGroup::Shape shares_of(const ModelMesh& mesh, const Question& question,
                                           const std::vector<Place>& group, const GroupCosts& costs) const;
  const GroupCosts* costs_of(const std::vector<Place>& places);

  const Cluster& cluster_;
  std::vector<Place> ranks_;
  CollectiveTable table_;
  std::map<std::tuple<int, int, Question>, MeshGroup> groups_;  ///< by tensor-parallel ranks and stages of the mesh
  /// By where ranks lie from the first one's node on and, where nodes differ, which node that is.
  std::map<std::pair<int, std::vector<Place>>, std::unique_ptr<GroupCosts>> costs_;
};

}  // namespace simsync::detail
