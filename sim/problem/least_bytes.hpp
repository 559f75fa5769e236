// What no way to share out a model's dense layers can do without.
#pragma once
#include <cstdint>

#include "models/model.hpp"

namespace simsync {

/// Elements that each of `ranks` sends in a step of so many samples when every dense layer is shared out among all of
/// them by the grid that sends least (best_grid in strategies/sbp/linear_layer.hpp, after Chen et al., "AutoDDL",
/// 2024), without a pipeline and without conversions between layers. Attention, convolutions, recurrences and experts
/// are not in it. @throws PlanError where a layer has fewer numbers than ranks.
double least_elements_sent(const Model& model, int ranks, std::int64_t samples);

}  // namespace simsync
