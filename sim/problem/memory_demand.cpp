#include "sim/problem/memory_demand.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "models/precision.hpp"
#include "sim/plan/units.hpp"
#include "strategies/pipeline/pipeline_schedule.hpp"

namespace simsync::detail {
namespace {

/// What the rank that holds most has of a variable of which it updates a share.
HeldVariable held_of_sharded(const Sharding& sharding, double share) {
  return {
      .weights = sharding.stage >= 3 ? share : 1.0, .gradient = sharding.reduces_early() ? share : 1.0, .state = share};
}

HeldVariable held(const Variable& variable, const VariableStrategy& entry, const GraphStrategy& graph) {
  const bool sparse = travels_sparse(variable, entry);
  const bool served = on_servers(entry);
  const double updated = sparse ? 0.0 : updated_by_workers(entry, graph);
  const auto all_if = [](bool condition) { return condition ? 1.0 : 0.0; };
  return {
      .weights = all_if(!(served && sparse)), .gradient = graph.gate == Gate::All ? updated : 0.0, .state = updated};
}

/// Sharded parameters that are whole at a time, and the gradients of one unit before they are reduced.
Bytes gathered(const RankModel& of, const Profile& profile) {
  const auto& [model, strategy, stage] = of;
  const Sharding& sharding = strategy.graph.sharding;
  double root = 0.0;
  double largest_gradients = 0.0;
  std::vector<double> blocks;
  for (const Unit& unit : units_of(model, strategy, stage)) {
    std::vector<VariableId> shared;
    for (const VariableId id : unit.variables) {
      if (of.shares(id) > 1) shared.push_back(id);
    }
    const double gradients = reduced_bytes(model, shared, sharding, profile);
    largest_gradients = std::max(largest_gradients, gradients);
    (unit.root ? root : blocks.emplace_back(0.0)) += gathered_bytes(model, shared, sharding, profile);
  }
  double bytes = sharding.reduces_early() ? largest_gradients : 0.0;
  if (sharding.stage < 3) return {static_cast<std::int64_t>(bytes)};
  // Of the blocks one is computed and others are there ahead of it.
  const std::size_t most = sharding.reshard_after_forward
                               ? std::min(blocks.size(), static_cast<std::size_t>(sharding.prefetch) + 1)
                               : blocks.size();
  double window = 0.0;
  double widest = 0.0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    window += blocks[i] - (i >= most ? blocks[i - most] : 0.0);
    widest = std::max(widest, window);
  }
  return {static_cast<std::int64_t>(bytes + root + widest)};
}

/// Of one attention, keys and values of all tokens, and in the backward pass their gradients. Those that go round a
/// ring are two shares at a time.
Bytes gathered_keys(const RankModel& of, const Profile& profile) {
  const ModelParallel& parallel = of.strategy.graph.parallel;
  if (parallel.context == 1) return {};
  double most = 0.0;
  for (LayerId id = 0; id < of.model.layer_count(); ++id)
    most = std::max(most, of.model.layer(id).operation.key_value_bytes);
  const double shares = parallel.context_overlap ? std::min(1.0, 2.0 / parallel.context) : 1.0;
  return {static_cast<std::int64_t>(2.0 * shares * profile.activation_bytes(most))};
}

/// Bytes that lie in buffers of the communication library for the whole run. What a rank of a stage sums with no other
/// needs none.
Bytes buffers(const RankModel& of, const Profile& profile) {
  const auto& [model, strategy, stage] = of;
  const Fusion& fusion = strategy.graph.fusion;
  if (!fusion.copies) return {};
  double bytes = 0.0;
  for (const VariableStrategy& entry : strategy.variables) {
    const Variable& variable = model.variable(entry.variable);
    if (on_servers(entry) || is_sharded(entry) || travels_sparse(variable, entry)) continue;
    if (stage != nullptr && ranks_that_sum(strategy.graph, stage->gradient_sum[entry.variable]) == 1) continue;
    bytes +=
        static_cast<double>(variable.elements()) * gradient_width(variable, profile.precision, profile.fp32_gradients);
  }
  const Bytes fused{static_cast<std::int64_t>(bytes)};
  if (fusion.kind == FusionKind::Buckets) return fused;
  return fusion.kind == FusionKind::Cycle ? std::min(fused, fusion.threshold) : Bytes{};
}

}  // namespace

bool on_servers(const VariableStrategy& entry) {
  return std::any_of(entry.shards.begin(), entry.shards.end(),
                     [](const Shard& shard) { return std::holds_alternative<PsSynchronizer>(shard.synchronizer); });
}

int RankModel::shares(VariableId id) const {
  return shard_ranks(strategy.graph, stage == nullptr ? GradientSum::Replicas : stage->gradient_sum[id]);
}

MemoryDemand demand_of(const RankModel& of, const Profile& profile, const OptimizerState& optimizer) {
  const auto& [model, strategy, stage] = of;
  MemoryDemand out{.batch = profile.batch, .precision = profile.precision};
  out.accumulates = profile.micro_steps > 1;
  out.recompute = strategy.graph.recompute;
  out.optimizer = optimizer;
  if (has_sharded(strategy)) out.gathered = gathered(of, profile);
  out.gathered += gathered_keys(of, profile);
  out.variables.resize(model.variables().size());
  const Sharding& sharding = strategy.graph.sharding;
  const double most = sharding.whole_variables ? largest_share(model, strategy) : 0.0;
  for (const VariableStrategy& entry : strategy.variables) {
    const double share = sharding.whole_variables ? most : 1.0 / of.shares(entry.variable);
    out.variables[entry.variable] = is_sharded(entry) ? held_of_sharded(sharding, share)
                                                      : held(model.variable(entry.variable), entry, strategy.graph);
  }
  out.buffers = buffers(of, profile);
  return out;
}

bool StageInPipeline::takes(std::int64_t micro_steps) const {
  return micro_steps <= kMostPasses && !obstacle_to(parallel.shape(static_cast<int>(micro_steps)));
}

StagePasses StageInPipeline::passes(int micro_steps) const {
  StagePasses out;
  for (const StageChunk& chunk : part.chunks) out.ends.push_back(chunk.end);
  using Task = StageTask::Kind;
  using Pass = ChunkPass::Kind;
  for (const StageTask& task : stage_order(parallel.shape(micro_steps), number)) {
    if (task.kind == Task::Forward) out.order.push_back({Pass::Forward, task.chunk});
    if (task.kind == Task::Backward || task.kind == Task::BackwardInput)
      out.order.push_back({Pass::Backward, task.chunk});
    // Gradients of weights need the inputs of layers.
    if (task.kind == Task::Backward || task.kind == Task::BackwardWeight)
      out.order.push_back({Pass::Release, task.chunk});
  }
  return out;
}

}  // namespace simsync::detail
