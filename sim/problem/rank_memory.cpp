#include "sim/problem/rank_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "base/parse_units.hpp"
#include "sim/plan/units.hpp"

namespace simsync {
namespace {

bool on_servers(const VariableStrategy& entry) {
  return std::any_of(entry.shards.begin(), entry.shards.end(),
                     [](const Shard& shard) { return std::holds_alternative<PsSynchronizer>(shard.synchronizer); });
}

HeldVariable held_of_sharded(const GraphStrategy& graph) {
  const Sharding& sharding = graph.sharding;
  const double share = 1.0 / sharding.group_of(graph.workers);
  return {
      .weights = sharding.stage >= 3 ? share : 1.0, .gradient = sharding.reduces_early() ? share : 1.0, .state = share};
}

HeldVariable held(const Variable& variable, const VariableStrategy& entry, const GraphStrategy& graph) {
  if (is_sharded(entry)) return held_of_sharded(graph);
  const bool sparse = travels_sparse(variable, entry);
  const bool served = on_servers(entry);
  const bool updates = !served || graph.update_at == UpdateAt::Worker;
  const auto all_if = [](bool condition) { return condition ? 1.0 : 0.0; };
  return {.weights = all_if(!(served && sparse)),
          .gradient = all_if(updates && graph.gate == Gate::All && !sparse),
          .state = all_if(updates && !sparse)};
}

/// Sharded parameters that are whole at a time, and the gradients of one unit before they are reduced.
Bytes gathered(const Model& model, const Strategy& strategy, const std::string& precision) {
  const Sharding& sharding = strategy.graph.sharding;
  if (sharding.group_of(strategy.graph.workers) == 1) return {};
  double root = 0.0;
  double largest_gradients = 0.0;
  std::vector<double> blocks;
  for (const Unit& unit : units_of(model, strategy)) {
    double parameters = 0.0;
    double gradients = 0.0;
    for (const VariableId id : unit.variables) {
      const Variable& variable = model.variable(id);
      const auto elements = static_cast<double>(variable.elements());
      parameters += elements * width_of(variable, sharding.param_dtype, precision);
      gradients += elements * width_of(variable, sharding.reduce_dtype, precision);
    }
    largest_gradients = std::max(largest_gradients, gradients);
    (unit.root ? root : blocks.emplace_back(0.0)) += parameters;
  }
  double bytes = sharding.stage >= 2 ? largest_gradients : 0.0;
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

/// Bytes that lie in buffers of the communication library for the whole run.
Bytes buffers(const Model& model, const Strategy& strategy, const std::string& precision) {
  const Fusion& fusion = strategy.graph.fusion;
  if (!fusion.copies) return {};
  const bool half = precision == "fp16" || precision == "bf16";
  Bytes fused;
  for (const VariableStrategy& entry : strategy.variables) {
    const Variable& variable = model.variable(entry.variable);
    if (!on_servers(entry) && !is_sharded(entry) && !travels_sparse(variable, entry)) fused += variable.bytes();
  }
  if (half) fused.count /= 2;
  if (fusion.kind == FusionKind::Buckets) return fused;
  return fusion.kind == FusionKind::Cycle ? std::min(fused, fusion.threshold) : Bytes{};
}

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

/// Samples that fit, 0 if one does not. Activations grow with each.
std::int64_t largest_batch(const Model& model, MemoryDemand demand, Bytes device) {
  std::int64_t fits = 0;
  std::int64_t too_many = demand.batch;
  while (too_many - fits > 1) {
    demand.batch = fits + (too_many - fits) / 2;
    (memory_bound(model, demand).total() <= device ? fits : too_many) = demand.batch;
  }
  return fits;
}

}  // namespace

RankMemory rank_memory(const Model& model, const Cluster& cluster, const Strategy& strategy, const Profile& profile,
                       const OptimizerState& optimizer) {
  MemoryDemand demand{.batch = profile.batch, .precision = profile.precision};
  demand.optimizer = optimizer;
  demand.gathered = gathered(model, strategy, profile.precision);
  demand.variables.resize(model.variables().size());
  for (const VariableStrategy& entry : strategy.variables)
    demand.variables[entry.variable] = held(model.variable(entry.variable), entry, strategy.graph);
  demand.buffers = buffers(model, strategy, profile.precision);
  const DeviceClass& device = smallest_device(cluster, strategy.graph.workers);
  RankMemory out{.bound = memory_bound(model, demand), .device = device.name, .device_bytes = device.memory};
  out.shares_parameters = strategy.graph.sharding.stage == 3 && has_sharded(strategy);
  if (!out.fits()) out.largest_batch = largest_batch(model, demand, device.memory);
  return out;
}

std::string memory_text(const RankMemory& memory) {
  const auto bytes = [](Bytes amount) { return format_bytes(static_cast<double>(amount.count)); };
  std::string needs = fmt::format("needs at least {}", bytes(memory.bound.total()));
  if (memory.device_bytes.count == 0) return needs;
  return fmt::format("{}, {} has {}", needs, memory.device, bytes(memory.device_bytes));
}

std::string misfit_text(const RankMemory& memory) {
  const MemoryBound& bound = memory.bound;
  std::vector<std::string> parts;
  const auto add = [&](const char* name, Bytes amount) {
    if (amount.count > 0) parts.push_back(fmt::format("{} {}", name, format_bytes(static_cast<double>(amount.count))));
  };
  add("weights", bound.weights);
  add("optimizer", bound.state);
  add("buffers", bound.buffers);
  add("gathered blocks", bound.gathered);
  add("gradients", bound.gradients);
  add("activations", bound.activations);
  return fmt::format("does not fit: {} ({})", memory_text(memory), fmt::join(parts, ", "));
}

std::string remedy_text(const RankMemory& memory) {
  if (memory.largest_batch > 0) return fmt::format("--batch {} is the largest that may fit", memory.largest_batch);
  if (memory.shares_parameters) return "not even one sample fits: it needs more workers that share the parameters";
  return "not even one sample fits: --strategy fsdp shares the state out over the workers";
}

}  // namespace simsync
