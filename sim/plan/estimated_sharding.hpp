// Sharded data parallelism in an estimated step. Private to sim/plan.
#pragma once
#include "sim/plan/estimate_context.hpp"

namespace simsync::detail {

/// Units are gathered and reduced one after another on the stream of their group. Variables that are not sharded are
/// left out.
Evaluation estimate_sharded(const EstimateContext& context, const Strategy& strategy);

}  // namespace simsync::detail
