#include "sim/plan/units.hpp"

#include <algorithm>
#include <utility>

#include "models/blocks.hpp"
#include "strategies/wire_bytes.hpp"

namespace simsync {
namespace {

std::int64_t bytes_of(const Model& model, const Unit& unit) {
  std::int64_t bytes = 0;
  for (const VariableId id : unit.variables) bytes += model.variable(id).bytes().count;
  return bytes;
}

/// `next` follows it.
void append(Unit& unit, const Unit& next) {
  unit.label = unit.label.substr(0, unit.label.find(" ...")) + " ... " + next.label;
  unit.last = next.last;
  unit.variables.insert(unit.variables.end(), next.variables.begin(), next.variables.end());
}

}  // namespace

int shard_ranks(const GraphStrategy& graph, GradientSum sum) {
  const int group = graph.sharding.group_of(graph.replicas());
  return sum == GradientSum::Experts ? std::max(1, group / graph.parallel.experts) : group;
}

int summing_ranks(const GraphStrategy& graph, GradientSum sum) {
  return sum == GradientSum::Experts ? graph.replicas() / graph.parallel.experts : graph.replicas();
}

int ranks_that_sum(const GraphStrategy& graph, GradientSum sum) {
  return summing_ranks(graph, sum) * (sum == GradientSum::Stage ? graph.parallel.tensor : 1);
}

std::vector<Unit> units_of(const Model& model, const Strategy& strategy, const StageModel* stage) {
  const auto another_chunk_begins = [&](LayerId before, LayerId layer) {
    return stage != nullptr && std::any_of(stage->chunks.begin(), stage->chunks.end(), [&](const StageChunk& chunk) {
             return chunk.begin > before && chunk.begin <= layer;
           });
  };
  Unit root{.label = "root", .root = true, .first = 0, .last = model.layer_count() - 1, .variables = {}};
  std::vector<Unit> blocks;
  for (LayerId layer = 0; layer < model.layer_count(); ++layer) {
    const std::string block = block_of(model.layer(layer).name);
    Unit* unit = &root;
    if (!block.empty()) {
      if (blocks.empty() || blocks.back().label != block)
        blocks.push_back({.label = block, .first = layer, .last = layer, .variables = {}});
      unit = &blocks.back();
      unit->last = layer;
    }
    for (const VariableId id : model.layer(layer).variables)
      if (is_sharded(strategy.variables[id])) unit->variables.push_back(id);
  }
  std::vector<Unit> out;
  if (!root.variables.empty()) out.push_back(root);
  for (const Unit& block : blocks) {
    if (block.variables.empty()) continue;
    const bool grows = !out.empty() && !out.back().root && !another_chunk_begins(out.back().last, block.first) &&
                       bytes_of(model, out.back()) < strategy.graph.sharding.min_unit.count;
    if (grows) {
      append(out.back(), block);
    } else {
      out.push_back(block);
    }
  }
  return out;
}

std::vector<VariableId> shared_among(GradientSum ranks, std::vector<VariableId> variables, const StageModel& stage) {
  const bool experts = ranks == GradientSum::Experts;
  std::erase_if(variables, [&](VariableId id) { return (stage.gradient_sum[id] == GradientSum::Experts) != experts; });
  return variables;
}

std::vector<Unit> units_among(GradientSum ranks, std::vector<Unit> units, const StageModel& stage) {
  for (Unit& unit : units) unit.variables = shared_among(ranks, std::move(unit.variables), stage);
  std::erase_if(units, [](const Unit& unit) { return unit.variables.empty(); });
  return units;
}

std::vector<std::vector<VariableId>> owned_variables(const Model& model, const Strategy& strategy) {
  std::vector<VariableId> order;
  for (VariableId id = 0; id < model.variables().size(); ++id)
    if (is_sharded(strategy.variables[id])) order.push_back(id);
  std::stable_sort(order.begin(), order.end(), [&](VariableId a, VariableId b) {
    return model.variable(a).elements() > model.variable(b).elements();
  });
  const GraphStrategy& graph = strategy.graph;
  std::vector<std::vector<VariableId>> owned(static_cast<std::size_t>(graph.sharding.group_of(graph.replicas())));
  std::vector<std::int64_t> elements(owned.size(), 0);
  for (const VariableId id : order) {
    const auto rank = static_cast<std::size_t>(std::min_element(elements.begin(), elements.end()) - elements.begin());
    owned[rank].push_back(id);
    elements[rank] += model.variable(id).elements();
  }
  return owned;
}

double largest_share(const Model& model, const Strategy& strategy) {
  const GraphStrategy& graph = strategy.graph;
  if (!graph.sharding.whole_variables) return 1.0 / graph.sharding.group_of(graph.replicas());
  std::int64_t all = 0;
  std::int64_t most = 0;
  for (const auto& variables : owned_variables(model, strategy)) {
    std::int64_t elements = 0;
    for (const VariableId id : variables) elements += model.variable(id).elements();
    all += elements;
    most = std::max(most, elements);
  }
  return static_cast<double>(most) / static_cast<double>(all);
}

double gathered_bytes(const Model& model, const std::vector<VariableId>& variables, const Sharding& sharding,
                      const Profile& profile) {
  double bytes = 0.0;
  for (const VariableId id : variables)
    bytes += static_cast<double>(model.variable(id).elements()) *
             gathered_width(model.variable(id), sharding, profile.precision);
  return bytes;
}

double reduced_bytes(const Model& model, const std::vector<VariableId>& variables, const Sharding& sharding,
                     const Profile& profile) {
  double bytes = 0.0;
  for (const VariableId id : variables)
    bytes += static_cast<double>(model.variable(id).elements()) *
             reduced_width(model.variable(id), sharding, profile.precision, profile.fp32_gradients);
  return bytes;
}

double tied_table_bytes(const StageModel& stage, const Strategy& of_stage, const Profile& profile) {
  const VariableId copy = *stage.shared_copy;
  const VariableStrategy& how = of_stage.variables[copy];
  const Variable& table = stage.model.variable(copy);
  if (!is_sharded(how)) return wire_bytes(table, how, table.elements(), gradients_of(profile));
  const Sharding& sharding = of_stage.graph.sharding;
  const int parts = sharding.stage >= 2 ? shard_ranks(of_stage.graph, stage.gradient_sum[copy]) : 1;
  return reduced_bytes(stage.model, {copy}, sharding, profile) / parts;
}

}  // namespace simsync
