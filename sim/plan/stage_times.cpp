#include "sim/plan/stage_times.hpp"

#include "sim/plan/boxing_collective.hpp"
#include "sim/plan/plan_writer.hpp"

namespace simsync::detail {
double StageTimes::collective(MeshGroups::Question among, const CollectiveKind& kind, double bytes) {
  among.stage = stage_;
  const MeshGroup& group = groups_.group(mesh_, among);
  if (group.ranks() < 2 || bytes <= 0.0) return 0.0;
  return groups_.time(group, kind, bytes) + graph_.per_operation_cost.value();
}

StageWork StageTimes::work(const StageModel& part, const Profile& profile) {
  const double slowdown = groups_.slowdown(mesh_, stage_);
  StageWork out{.forward = {}, .backward = {}, .weight = {}, .update = profile.update.value()};
  for (LayerId id = 0; id < part.model.layer_count(); ++id) {
    const bool again = !profile.recomputed.empty() && profile.recomputed[id];
    const double ahead = boxing(part.boxing.before_forward[id], profile);
    const double back = boxing(part.boxing.before_backward[id], profile) + (again ? ahead : 0.0);
    const double forward = slowdown * profile.layers[id].forward.value();
    const double backward = slowdown * profile.layers[id].backward.value();
    const LayerKind kind = part.model.layer(id).kind;
    const bool has_product = kind == LayerKind::Dense || kind == LayerKind::Conv;
    out.weight.push_back(has_product ? kWeightShare * backward : 0.0);
    out.forward.push_back(forward + ahead);
    out.backward.push_back(backward + (again ? forward : 0.0) + back);
    out.split += ahead + back;
  }
  return out;
}

double StageTimes::boxing(const std::vector<TensorBoxing>& steps, const Profile& profile) {
  double time = 0.0;
  for (const TensorBoxing& step : steps) {
    const bool of_experts = step.group == BoxingGroup::Experts;
    const int ranks = of_experts ? mesh_.experts() : mesh_.tensor();
    const auto [primitive, bytes] = collective_of(step.op, profile.activation_bytes(step.bytes), ranks);
    const MeshGroups::Question among{.kind = of_experts ? MeshGroupKind::Shard : MeshGroupKind::Tensor, .size = ranks};
    time += collective(among, {.primitive = primitive, .algorithm = CollectiveAlgorithm::Auto}, bytes);
  }
  return time;
}

}  // namespace simsync::detail
