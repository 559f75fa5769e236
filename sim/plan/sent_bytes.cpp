#include "sim/plan/sent_bytes.hpp"

#include <algorithm>

#include "sim/plan/units.hpp"
#include "strategies/wire_bytes.hpp"

namespace simsync {
namespace {

/// What each of so many ranks sends of a tensor in a reduce-scatter or an all-gather; an all-reduce is both.
double share_sent(int ranks) {
  return (ranks - 1.0) / ranks;
}

class StageBytes {
public:
  StageBytes(const std::vector<StageModel>& stages, const Strategy& strategy, const Profile& profile)
      : stages_(stages),
        strategy_(strategy),
        graph_(strategy.graph),
        profile_(profile),
        activation_(graph_.micro_steps * profile.activation_bytes(1.0)) {}

  [[nodiscard]] SentBytes of(std::size_t stage) const {
    return {.split = split(stages_[stage]), .stages = to_stages(stage), .gradients = gradients(stages_[stage])};
  }

private:
  [[nodiscard]] double split(const StageModel& part) const {
    const auto sum = [&](const std::vector<TensorBoxing>& steps) {
      double bytes = 0.0;
      for (const TensorBoxing& step : steps) bytes += sent(step);
      return bytes;
    };
    double bytes = 0.0;
    for (LayerId id = 0; id < part.model.layer_count(); ++id) {
      const auto whole = part.layer_of[id];
      const bool again = whole && !profile_.recomputed.empty() && profile_.recomputed[*whole];
      bytes += (again ? 2.0 : 1.0) * sum(part.boxing.before_forward[id]) + sum(part.boxing.before_backward[id]);
    }
    return activation_ * bytes;
  }

  [[nodiscard]] double sent(const TensorBoxing& step) const {
    return bytes_sent(step.op, step.bytes, ranks_of(step.group, graph_.parallel));
  }

  /// Activations to the next chunk, and gradients of what a chunk has received.
  [[nodiscard]] double to_stages(std::size_t stage) const {
    double bytes = 0.0;
    const auto count = static_cast<std::size_t>(graph_.parallel.chunks) * stages_.size();
    for (std::size_t chunk = stage; chunk < count && stages_.size() > 1; chunk += stages_.size()) {
      bytes += received_by(chunk);
      if (chunk + 1 < count) bytes += received_by(chunk + 1);
    }
    return activation_ * bytes;
  }
  [[nodiscard]] double received_by(std::size_t chunk) const {
    return stages_[chunk % stages_.size()].chunks[chunk / stages_.size()].received_bytes;
  }

  [[nodiscard]] double gradients(const StageModel& part) const {
    if (has_sharded(strategy_)) return sharded(part);
    double bytes = 0.0;
    for (VariableId id = 0; id < part.variable_of.size(); ++id) {
      const Variable& variable = part.model.variable(id);
      const GradientSum sum = part.gradient_sum[id];
      const int ranks = ranks_that_sum(graph_, sum);
      bytes += share_sent(ranks) * wire_bytes(variable, strategy_.variables[part.variable_of[id]], variable.elements(),
                                              gradients_of(profile_));
    }
    return 2.0 * bytes;
  }

  /// The root stays whole between its forward and its backward pass.
  [[nodiscard]] double sharded(const StageModel& part) const {
    const Sharding& sharding = graph_.sharding;
    const double gathers = sharding.stage < 3 ? 1.0 : graph_.micro_steps;
    const double reduces = sharding.reduces_early() ? graph_.micro_steps : 1.0;
    double bytes = 0.0;
    for (const Unit& unit : units_of(part.model, stage_strategy(strategy_, part), &part)) {
      const bool again = sharding.stage == 3 && sharding.reshard_after_forward && !unit.root;
      for (const VariableId id : unit.variables) {
        const Variable& variable = part.model.variable(id);
        const GradientSum sum = part.gradient_sum[id];
        const int ranks = shard_ranks(graph_, sum);
        const auto elements = static_cast<double>(variable.elements());
        const double gathered = elements * gathered_width(variable, sharding, profile_.precision);
        const double reduced =
            elements * reduced_width(variable, sharding, profile_.precision, profile_.fp32_gradients);
        bytes += ((again ? 2.0 : 1.0) * gathers * gathered + reduces * reduced) * share_sent(ranks) +
                 reduces * 2.0 * reduced / ranks * share_sent(summing_ranks(graph_, sum) / ranks);
        if (sum == GradientSum::Stage) bytes += 2.0 * reduced / ranks * share_sent(graph_.parallel.tensor);
      }
    }
    return bytes;
  }

  const std::vector<StageModel>& stages_;
  const Strategy& strategy_;
  const GraphStrategy& graph_;
  const Profile& profile_;
  double activation_;  ///< bytes of a step for one of a sample in 32-bit elements
};

}  // namespace

SentBytes sent_bytes(const std::vector<StageModel>& stages, const Strategy& strategy, const Profile& profile) {
  const StageBytes bytes(stages, strategy, profile);
  SentBytes out;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const SentBytes here = bytes.of(stage);
    if (here.total() > out.total()) out = here;
  }
  return out;
}

}  // namespace simsync
