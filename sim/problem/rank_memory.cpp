#include "sim/problem/rank_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/parse_units.hpp"
#include "sim/plan/units.hpp"
#include "sim/problem/memory_demand.hpp"
#include "strategies/stage_model.hpp"

namespace simsync {
namespace {

using detail::demand_of;
using detail::on_servers;
using detail::StageInPipeline;

/// The device with the least memory among those that take part.
const DeviceClass& smallest_device(const Cluster& cluster, int workers) {
  const DeviceClass* smallest = nullptr;
  for (const NodeGroup& group : cluster.groups) {
    if (group.gpus == 0 || workers <= 0) continue;
    const DeviceClass& device = cluster.devices.at(group.device);
    if (smallest == nullptr || device.memory < smallest->memory) smallest = &device;
    workers -= std::min(workers, group.count * group.gpus);
  }
  SIMSYNC_ASSERT(smallest != nullptr);
  return *smallest;
}

/// What driver, CUDA context and communication library leave of a device. PyTorch says 79.14 of 80 GiB where an A100 is
/// full (1.1 % less), and a process 0.5 GiB besides what PyTorch allocates there (github.com/lianqi1008/Control-GIC
/// issue 6). A NCCL communicator takes 0.5 to 0.7 GiB on A100 (github.com/NVIDIA/nccl issue 964) and 1.06 GiB on H100
/// (issue 1685).
Bytes usable_of(Bytes device, int communicators) {
  constexpr double kOfDriver = 0.011;
  constexpr double kContext = 0.5 * (1 << 30);
  constexpr double kCommunicator = 1.0 * (1 << 30);
  const double left = (1.0 - kOfDriver) * static_cast<double>(device.count) - kContext;
  return {static_cast<std::int64_t>(std::max(0.0, left - communicators * kCommunicator))};
}

/// Of ranks that sum gradients: one, or of sharded state one for the shard group and one for the replicas of a shard.
int communicators_that_sum(const Strategy& strategy, GradientSum sum) {
  const GraphStrategy& graph = strategy.graph;
  const int all = summing_ranks(graph, sum);
  const int shard = has_sharded(strategy) ? shard_ranks(graph, sum) : all;
  return (shard > 1 ? 1 : 0) + (all > shard ? 1 : 0);
}

/// Servers need none. Tensor-parallel ranks have one, and so have stages, context-parallel and expert-parallel ranks.
int communicators_of(const Strategy& strategy) {
  const GraphStrategy& graph = strategy.graph;
  const bool collects = graph.aggregate_on_gpu || !std::all_of(strategy.variables.begin(), strategy.variables.end(),
                                                               [](const auto& entry) { return on_servers(entry); });
  if (graph.workers < 2 || !collects) return 0;
  const ModelParallel& parallel = graph.parallel;
  int out = communicators_that_sum(strategy, GradientSum::Replicas);
  for (const int ranks : {parallel.tensor, parallel.pipeline, parallel.context, parallel.experts})
    out += ranks > 1 ? 1 : 0;
  if (parallel.experts > 1) out += communicators_that_sum(strategy, GradientSum::Experts);
  return out;
}

/// What would fit in place of what does not.
class Changes {
public:
  /// `demand` is that of one of the micro-steps. `stage`: of a pipeline; null: the strategy has none.
  Changes(const Model& model, MemoryDemand demand, int micro_steps, Bytes device,
          const StageInPipeline* stage = nullptr)
      : model_(model), demand_(std::move(demand)), micro_steps_(micro_steps), device_(device), stage_(stage) {}

  /// Samples of a step, 0 if one of each micro-step does not fit. Activations grow with each.
  [[nodiscard]] std::int64_t largest_batch() const {
    MemoryDemand demand = demand_;
    std::int64_t fitting = 0;
    std::int64_t too_many = demand.batch;
    while (too_many - fitting > 1) {
      demand.batch = fitting + (too_many - fitting) / 2;
      (fits(demand) ? fitting : too_many) = demand.batch;
    }
    return micro_steps_ * fitting;
  }

  /// Of one sample at a time, all of them computed again.
  [[nodiscard]] Bytes least_activations() const {
    MemoryDemand demand = demand_;
    demand.batch = 1;
    if (!blocks_of(model_).empty()) demand.recompute = Recompute::Full;
    return memory_need(model_, demand).activations;
  }

  [[nodiscard]] std::vector<std::string> settings() const {
    std::vector<std::string> out;
    std::optional<std::int64_t> fewest;
    for (const Recompute recompute : {Recompute::None, Recompute::Selective, Recompute::Full}) {
      if (recompute < demand_.recompute || (recompute != Recompute::None && blocks_of(model_).empty())) continue;
      const std::string again =
          recompute == demand_.recompute ? "" : fmt::format("--set strategy.recompute={}", name_of(recompute));
      MemoryDemand demand = demand_;
      demand.recompute = recompute;
      if (fits(demand)) {
        out.push_back(again);
        break;
      }
      const auto steps = fewest_micro_steps(demand);
      if (!steps || (fewest && *steps >= *fewest)) continue;
      fewest = steps;
      out.push_back(fmt::format("--set strategy.micro_steps={}{}{}", *steps, again.empty() ? "" : " ", again));
    }
    return out;
  }

private:
  [[nodiscard]] bool fits(const MemoryDemand& demand) const { return memory_need(model_, demand).total() <= device_; }

  /// That split the same samples evenly.
  [[nodiscard]] std::optional<std::int64_t> fewest_micro_steps(MemoryDemand demand) const {
    const std::int64_t samples = demand.batch * micro_steps_;
    demand.accumulates = true;
    for (std::int64_t steps = micro_steps_ + 1; steps <= samples; ++steps) {
      if (samples % steps != 0 || (stage_ != nullptr && !stage_->takes(steps))) continue;
      demand.batch = samples / steps;
      if (stage_ != nullptr) demand.passes = stage_->passes(static_cast<int>(steps));
      if (fits(demand)) return steps;
    }
    return std::nullopt;
  }

  const Model& model_;
  MemoryDemand demand_;
  int micro_steps_;
  Bytes device_;
  const StageInPipeline* stage_;
};

/// Where nothing else helps: sharded state over more ranks, or more of it, and what has to go with that. The first of
/// these with which the same samples fit.
std::vector<std::string> share_more(const Model& model, const Strategy& strategy, const Profile& profile,
                                    const OptimizerState& optimizer, const DeviceClass& device) {
  constexpr int kAllStages = 3;
  const Sharding& now = strategy.graph.sharding;
  if (!has_sharded(strategy)) return {};
  std::vector<int> stages{now.stage};
  if (now.stage < kAllStages && !now.whole_variables) stages.push_back(kAllStages);
  for (const bool over_all : {false, true}) {
    if (over_all && now.group == 0) continue;
    for (const int stage : stages) {
      if (!over_all && stage == now.stage) continue;  // that is what does not fit
      Strategy more = strategy;
      more.graph.sharding.stage = stage;
      if (over_all) more.graph.sharding.group = 0;
      const MemoryDemand demand = demand_of({model, more}, profile, optimizer);
      const Bytes usable = usable_of(device.memory, communicators_of(more));
      std::string text;
      if (stage != now.stage) text += fmt::format("--set strategy.stage={}", stage);
      if (over_all) text += fmt::format("{}--set strategy.group=all", text.empty() ? "" : " ");
      if (memory_need(model, demand).total() <= usable) return {text};
      const std::vector<std::string> besides = Changes(model, demand, profile.micro_steps, usable).settings();
      if (!besides.empty()) return {fmt::format("{} {}", text, besides.front())};
    }
  }
  return {};
}

/// What one rank holds, of the model that it computes. `stage`: as in Changes.
struct Part {
  const Model& model;
  const Strategy& strategy;
  MemoryDemand demand;
  const StageInPipeline* stage = nullptr;
};

struct StagePart {
  std::size_t stage = 0;
  Strategy strategy;
  MemoryDemand demand;
};

/// Of the stage that needs most.
StagePart largest_stage(const std::vector<StageModel>& stages, const Strategy& strategy, const Profile& profile,
                        const OptimizerState& optimizer) {
  const ModelParallel& parallel = strategy.graph.parallel;
  std::optional<StagePart> out;
  Bytes most;
  for (std::size_t number = 0; number < stages.size(); ++number) {
    const Model& model = stages[number].model;
    Strategy of_stage = stage_strategy(strategy, stages[number]);
    MemoryDemand demand = demand_of({model, of_stage, &stages[number]}, profile, optimizer);
    demand.passes = StageInPipeline{stages[number], parallel, static_cast<int>(number)}.passes(profile.micro_steps);
    const Bytes need = memory_need(model, demand).total();
    if (out && need <= most) continue;
    most = need;
    out = StagePart{number, std::move(of_stage), std::move(demand)};
  }
  return std::move(*out);
}

RankMemory need_of(const Part& part, const Cluster& cluster) {
  const DeviceClass& device = smallest_device(cluster, part.strategy.graph.workers);
  return {.need = memory_need(part.model, part.demand),
          .device = device.name,
          .device_bytes = device.memory,
          .usable = usable_of(device.memory, communicators_of(part.strategy))};
}

RankMemory memory_of(const Part& part, const Cluster& cluster, const Profile& profile,
                     const OptimizerState& optimizer) {
  const auto& [model, strategy, demand, stage] = part;
  RankMemory out = need_of(part, cluster);
  if (out.fits()) return out;
  const Changes changes(model, demand, profile.micro_steps, out.usable, stage);
  out.largest_batch = changes.largest_batch();
  out.changes = changes.settings();
  if (out.largest_batch == 0 && out.changes.empty() && strategy.graph.parallel.is_trivial())
    out.changes = share_more(model, strategy, profile, optimizer, smallest_device(cluster, strategy.graph.workers));
  out.sharing = !has_sharded(strategy)               ? StateSharing::None
                : strategy.graph.sharding.stage == 3 ? StateSharing::All
                                                     : StateSharing::Part;
  out.least_activations = changes.least_activations();
  return out;
}

}  // namespace

RankMemory rank_memory(const Model& model, const Cluster& cluster, const Strategy& strategy, const Profile& profile,
                       const OptimizerState& optimizer) {
  if (!strategy.graph.parallel.is_trivial()) {
    const std::vector<StageModel> stages = stage_models(model, strategy.graph.parallel);
    const StagePart part = largest_stage(stages, strategy, profile, optimizer);
    const StageModel& fullest = stages[part.stage];
    const StageInPipeline stage{fullest, strategy.graph.parallel, static_cast<int>(part.stage)};
    return memory_of({fullest.model, part.strategy, part.demand, &stage}, cluster, profile, optimizer);
  }
  return memory_of({model, strategy, demand_of({model, strategy}, profile, optimizer)}, cluster, profile, optimizer);
}

RankMemory stage_memory(const std::vector<StageModel>& stages, const Cluster& cluster, const Strategy& strategy,
                        const Profile& profile, const OptimizerState& optimizer) {
  const StagePart part = largest_stage(stages, strategy, profile, optimizer);
  return need_of({stages[part.stage].model, part.strategy, part.demand}, cluster);
}

std::string memory_text(const RankMemory& memory) {
  const auto bytes = [](Bytes amount) { return format_bytes(static_cast<double>(amount.count)); };
  std::string needs = fmt::format("needs about {}", bytes(memory.need.total()));
  if (memory.device_bytes.count == 0) return needs;
  return fmt::format("{}, {} leaves {} of {}", needs, memory.device, bytes(memory.usable), bytes(memory.device_bytes));
}

std::string misfit_text(const RankMemory& memory) {
  const MemoryNeed& need = memory.need;
  std::vector<std::string> parts;
  const auto add = [&](const char* name, Bytes amount) {
    if (amount.count > 0) parts.push_back(fmt::format("{} {}", name, format_bytes(static_cast<double>(amount.count))));
  };
  add("weights", need.weights);
  add("optimizer", need.state);
  add("buffers", need.buffers);
  add("gathered blocks", need.gathered);
  add("gradients", need.gradients);
  add("activations", need.activations);
  return fmt::format("does not fit: {} ({})", memory_text(memory), fmt::join(parts, ", "));
}

std::string remedy_text(const RankMemory& memory) {
  std::vector<std::string> changes = memory.changes;
  if (memory.largest_batch > 0)
    changes.push_back(memory.replicas > 0 ? fmt::format("--global-batch {}", memory.largest_batch * memory.replicas)
                                          : fmt::format("--batch {}", memory.largest_batch));
  if (!changes.empty()) return fmt::format("it fits with {}", fmt::join(changes, ", or with "));
  if (memory.least_activations > memory.usable)
    return fmt::format(
        "the activations of one sample take {} even where all are computed again: it needs ranks that share them out "
        "('simsync search --method coordinate' looks for such a layout), shorter samples or larger devices",
        format_bytes(static_cast<double>(memory.least_activations.count)));
  std::string more = "it needs more workers that share the parameters";
  if (memory.sharing == StateSharing::None) more = "--strategy fsdp shares the state out over the workers";
  if (memory.sharing == StateSharing::Part)
    more = "--set strategy.stage=3 and more workers share more of the state out";
  return "not even one sample fits: " + more + "; 'simsync search --method coordinate' looks for a layout that fits";
}

}  // namespace simsync
