// How many bytes a rank sends in a step, by closed forms: what a layout moves, whatever the links.
#pragma once
#include <vector>

#include "models/profile.hpp"
#include "strategies/stage_model.hpp"

namespace simsync {

/// Of a rank, bytes in a step.
struct SentBytes {
  double split = 0.0;      ///< to ranks that share out the same layers, or experts
  double stages = 0.0;     ///< activations and their gradients to other stages
  double gradients = 0.0;  ///< to replicas: gradients, and parameters that are shared out
  [[nodiscard]] double total() const { return split + stages + gradients; }
};

/// Of the stage whose ranks send most, with ring collectives: an all-reduce of b bytes over p ranks sends 2 b (p-1)/p,
/// a reduce-scatter or an all-gather half of that. For strategies that StagesEstimator takes; `stages` and `profile` as
/// there. Tied tables, the sums of a split loss's numbers and headers are left out.
SentBytes sent_bytes(const std::vector<StageModel>& stages, const Strategy& strategy, const Profile& profile);

}  // namespace simsync
