// What one rank of a stage computes and exchanges in a micro-step, for estimates. Private to sim/plan.
#pragma once
#include <vector>

#include "models/profile.hpp"
#include "sim/plan/mesh_groups.hpp"
#include "strategies/stage_model.hpp"

namespace simsync::detail {

/// As the cluster's library runs it.
constexpr CollectiveKind automatic(CollectivePrimitive primitive) {
  return {.primitive = primitive, .algorithm = CollectiveAlgorithm::Auto};
}

/// What a rank of a stage computes and exchanges in one micro-step, s by layer of its model, with the collectives of
/// ranks that share out layers.
struct StageWork {
  std::vector<double> forward;
  std::vector<double> backward;  ///< with what is computed again
  std::vector<double> weight;    ///< of `backward`: gradients of weights
  double update = 0.0;           ///< of all that it holds
  double computed = 0.0;         ///< of a micro-step: layers alone
  double exchanged = 0.0;        ///< of a micro-step: collectives of ranks that share out layers, hidden or not
};

/// For one stage of one strategy.
class StageTimes {
public:
  /// Keeps references.
  StageTimes(MeshGroups& groups, const ModelMesh& mesh, const Strategy& strategy, int stage)
      : groups_(groups), mesh_(mesh), graph_(strategy.graph), stage_(stage) {}

  /// s, with the framework's cost of an operation; 0 of one rank. `among` is of this stage, whatever it says.
  [[nodiscard]] double collective(MeshGroups::Question among, const CollectiveKind& kind, double bytes);
  /// `profile` is that of the stage (stage_profile).
  [[nodiscard]] StageWork work(const StageModel& part, const Profile& profile);

private:
  class Pass;
  [[nodiscard]] double boxing(const TensorBoxing& step, const Profile& profile);

  MeshGroups& groups_;
  const ModelMesh& mesh_;
  const GraphStrategy& graph_;
  int stage_;
};

}  // namespace simsync::detail
