#include "sim/problem/without_effect.hpp"

#include <fmt/format.h>

#include "models/precision.hpp"

namespace simsync::detail {
namespace {

void note_sharding(const Strategy& strategy, std::vector<std::string>& notes) {
  const Sharding& now = strategy.graph.sharding;
  const Sharding usual;
  if (now == usual) return;
  if (!has_sharded(strategy)) {
    notes.emplace_back("sharding has no effect: no variable is sharded");
    return;
  }
  constexpr int kParametersToo = 3;
  const auto note = [&](const char* setting, const char* stages) {
    notes.push_back(fmt::format("{} has no effect: it is for {}, and this is stage {}", setting, stages, now.stage));
  };
  if (now.stage < kParametersToo && now.prefetch != usual.prefetch) note("prefetch", "stage 3");
  if (now.stage < kParametersToo && now.reshard_after_forward != usual.reshard_after_forward)
    note("reshard_after_forward", "stage 3");
  if (now.stage == 1 && now.reduce_every_micro_step != usual.reduce_every_micro_step)
    note("reduce_every_micro_step", "stages 2 and 3");
  if (now.stage == kParametersToo && now.overlap_gather != usual.overlap_gather)
    note("overlap_gather", "stages 1 and 2");
}

}  // namespace

void note_without_effect(const Strategy& strategy, std::vector<std::string>& notes) {
  note_sharding(strategy, notes);
  const ModelParallel& parallel = strategy.graph.parallel;
  if (parallel.sequence && parallel.tensor == 1)
    notes.emplace_back("sequence has no effect: there is one tensor-parallel rank");
  if (parallel.tensor_overlap && parallel.tensor == 1)
    notes.emplace_back("tensor_overlap has no effect: there is one tensor-parallel rank");
  if (parallel.tensor_overlap && parallel.tensor > 1 && !parallel.sequence)
    notes.emplace_back("tensor_overlap has no effect: it is for what sequence=true exchanges");
  if (parallel.context_overlap && parallel.context == 1)
    notes.emplace_back("context_overlap has no effect: there is one context-parallel rank");
  if (!parallel.context_balanced && parallel.context == 1)
    notes.emplace_back("context_balanced has no effect: there is one context-parallel rank");
}

void note_without_effect(const OptimizerState& optimizer, const Profile& profile, std::vector<std::string>& notes) {
  const bool half = has_half_weights(profile.precision);
  if (optimizer.master_weights && !half)
    notes.push_back(fmt::format("master_weights has no effect: weights have four bytes in {}", profile.precision));
  if (profile.source == ProfileSource::Roofline) return;
  const auto note = [&](bool differs, const char* setting) {
    if (differs) notes.push_back(fmt::format("{} counts for memory only: the time of the update is measured", setting));
  };
  note(optimizer.optimizer != OptimizerState{}.optimizer, "optimizer");
  note(optimizer.master_weights && half, "master_weights");
}

void note_without_effect(const ReplayOptions& options, const Plan& plan, std::vector<std::string>& notes) {
  if (options.steps_per_worker > 0 && !plan.steps_vary())
    notes.emplace_back("steps_per_worker has no effect: workers are in lock step and nothing of their steps varies");
  if (options.max_iterations != ReplayOptions{}.max_iterations && plan.steps_vary())
    notes.emplace_back("iterations has no effect: steps vary, and steps_per_worker says how many are simulated");
}

}  // namespace simsync::detail
