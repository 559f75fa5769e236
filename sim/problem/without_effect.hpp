// Settings that change nothing of what is predicted. Private to sim/problem.
#pragma once
#include <string>
#include <vector>

#include "models/optimizer.hpp"
#include "models/profile.hpp"
#include "sim/plan/plan.hpp"
#include "sim/problem/replay_options.hpp"
#include "strategies/strategy.hpp"

namespace simsync::detail {

/// A note for each setting that differs from its default and has no effect beside the others.
void note_without_effect(const Strategy& strategy, std::vector<std::string>& notes);
/// The same of the optimizer's settings in the precision of `profile`.
void note_without_effect(const OptimizerState& optimizer, const Profile& profile, std::vector<std::string>& notes);
/// The same of what says how many steps are simulated.
void note_without_effect(const ReplayOptions& options, const Plan& plan, std::vector<std::string>& notes);

}  // namespace simsync::detail
