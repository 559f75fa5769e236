#include "sim/problem/rank_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "base/parse_units.hpp"

namespace simsync {
namespace {

bool on_servers(const VariableStrategy& entry) {
  return std::any_of(entry.shards.begin(), entry.shards.end(),
                     [](const Shard& shard) { return std::holds_alternative<PsSynchronizer>(shard.synchronizer); });
}

HeldVariable held(const Variable& variable, const VariableStrategy& entry, const GraphStrategy& graph) {
  const bool sparse = travels_sparse(variable, entry);
  const bool served = on_servers(entry);
  const bool updates = !served || graph.update_at == UpdateAt::Worker;
  return {.weights = !(served && sparse),
          .gradient = updates && graph.gate == Gate::All && !sparse,
          .state = updates && !sparse};
}

/// Bytes that lie in buffers of the communication library for the whole run.
Bytes buffers(const Model& model, const Strategy& strategy, const std::string& precision) {
  const Fusion& fusion = strategy.graph.fusion;
  if (!fusion.copies) return {};
  const bool half = precision == "fp16" || precision == "bf16";
  Bytes fused;
  for (const VariableStrategy& entry : strategy.variables) {
    const Variable& variable = model.variable(entry.variable);
    if (!on_servers(entry) && !travels_sparse(variable, entry)) fused += variable.bytes();
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

}  // namespace

RankMemory rank_memory(const Model& model, const Cluster& cluster, const Strategy& strategy, const Profile& profile) {
  MemoryDemand demand{.batch = profile.batch, .precision = profile.precision};
  demand.variables.resize(model.variables().size());
  for (const VariableStrategy& entry : strategy.variables)
    demand.variables[entry.variable] = held(model.variable(entry.variable), entry, strategy.graph);
  demand.buffers = buffers(model, strategy, profile.precision);
  const DeviceClass& device = smallest_device(cluster, strategy.graph.workers);
  return {.bound = memory_bound(model, demand), .device = device.name, .device_bytes = device.memory};
}

std::string memory_text(const RankMemory& memory) {
  const auto bytes = [](Bytes amount) { return format_bytes(static_cast<double>(amount.count)); };
  const std::string needs = fmt::format("needs at least {}", bytes(memory.bound.total()));
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
  add("gradients", bound.gradients);
  add("activations", bound.activations);
  return fmt::format("does not fit: {} ({}); it would run only with recomputation, offloading or a smaller batch",
                     memory_text(memory), fmt::join(parts, ", "));
}

}  // namespace simsync
