// Settings that other settings leave without effect, as those of sharding where nothing is sharded. Private to
// sim/problem.
#pragma once
#include <string>
#include <vector>

#include "models/optimizer.hpp"
#include "models/profile.hpp"
#include "sim/plan/plan.hpp"
#include "sim/problem/replay_options.hpp"
#include "strategies/strategy.hpp"

namespace simsync::detail {

/// A note for each setting of sharding, and each of sequence, tensor_overlap, context_overlap and context_balanced,
/// that differs from its default and that the strategy's other settings leave without effect. What has none because
/// there is one worker is not told.
void note_without_effect(const Strategy& strategy, std::vector<std::string>& notes);
/// The same of `optimizer` and `master_weights`, and where they change memory but not the time of a measured update.
void note_without_effect(const OptimizerState& optimizer, const Profile& profile, std::vector<std::string>& notes);
/// The same of `iterations` and `steps_per_worker`.
void note_without_effect(const ReplayOptions& options, const Plan& plan, std::vector<std::string>& notes);

}  // namespace simsync::detail
