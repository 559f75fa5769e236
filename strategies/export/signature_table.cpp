#include "strategies/export/signature_table.hpp"

#include <fmt/format.h>

#include "base/csv.hpp"
#include "base/error.hpp"
#include "strategies/stage_model.hpp"

namespace simsync {
namespace {

constexpr Sbp kB = Sbp::broadcast();
constexpr Sbp kFirst = Sbp::split(0);

/// Layouts along the mesh axes of a stage.
struct Layouts {
  Sbp groups;
  Sbp shares;
  Sbp tensor;
};

class Table {
public:
  Table(const Strategy& strategy, const Model& model)
      : strategy_(strategy),
        model_(model),
        splits_(splits_of(model, strategy.graph.parallel)),
        shares_(strategy.graph.sharding.group_of(strategy.graph.replicas())),
        groups_(strategy.graph.replicas() / shares_) {}

  std::string text() {
    add({"stage", "chunk", "layer", "kind", "tensor", "name", "dp_replicate", "dp_shard", "tp"});
    const std::vector<StageModel> stages = stage_models(model_, strategy_.graph.parallel);
    for (std::size_t stage = 0; stage < stages.size(); ++stage)
      for (std::size_t chunk = 0; chunk < stages[stage].chunks.size(); ++chunk) {
        place_ = {std::to_string(stage), std::to_string(chunk)};
        const StageChunk& run = stages[stage].chunks[chunk];
        for (LayerId id = run.begin; id < run.end; ++id)
          if (stages[stage].layer_of[id]) add_layer(stages[stage], id);
      }
    return text_;
  }

private:
  void add(const std::vector<std::string>& cells) { text_ += csv_row(cells) + "\n"; }

  void add_row(const Layer& layer, const std::string& tensor, const std::string& name, const Layouts& layouts) {
    const auto cell = [](int ranks, Sbp layout) { return ranks > 1 ? text_of(layout) : std::string{}; };
    add({place_.first, place_.second, layer.name, name_of(layer.kind), tensor, name, cell(groups_, layouts.groups),
         cell(shares_, layouts.shares), cell(strategy_.graph.parallel.tensor, layouts.tensor)});
  }

  void add_layer(const StageModel& stage, LayerId id) {
    const Layer& layer = stage.model.layer(id);
    const LayerSplit split = splits_[*stage.layer_of[id]];
    const ActivationLayouts activations = layouts_of(split);
    add_row(layer, "input", "", {kFirst, kFirst, activations.input});
    for (const VariableId variable : layer.variables) add_variable(layer, stage.variable_of[variable], split);
    add_row(layer, "output", "", {kFirst, kFirst, activations.output});
  }

  void add_variable(const Layer& layer, VariableId id, LayerSplit split) {
    const Variable& variable = model_.variable(id);
    const bool shared = is_sharded(strategy_.variables[id]);
    const Sbp tensor = layout_of(variable, split);
    const bool kept_in_shares = shared && strategy_.graph.sharding.stage == 3;
    add_row(layer, "weight", variable.name, {kB, kept_in_shares ? kFirst : kB, tensor});
    add_row(layer, "gradient", variable.name, {kB, shared ? kFirst : kB, tensor});
  }

  const Strategy& strategy_;
  const Model& model_;
  std::vector<LayerSplit> splits_;
  int shares_;
  int groups_;
  std::pair<std::string, std::string> place_;  ///< stage and chunk
  std::string text_;
};

/// Layouts say which rank has what; servers are none, and experts have replicas and shares of their own.
void expect_ranks_only(const Strategy& strategy, const Model& model) {
  if (strategy.graph.parallel.experts > 1)
    throw PlanError(
        fmt::format("strategy '{}' has no table of signatures: its experts lie on other mesh axes than the "
                    "rest of the model",
                    strategy.name));
  if (strategy.graph.parallel.context > 1)
    throw PlanError(
        fmt::format("strategy '{}' has no table of signatures: it has no column for the tokens that context-parallel "
                    "ranks share out",
                    strategy.name));
  for (const VariableStrategy& entry : strategy.variables)
    for (const Shard& shard : entry.shards)
      if (!std::holds_alternative<AllReduceSynchronizer>(shard.synchronizer) &&
          !std::holds_alternative<ShardedSynchronizer>(shard.synchronizer))
        throw PlanError(
            fmt::format("strategy '{}' has no table of signatures: variable '{}' is neither all-reduced nor "
                        "sharded among ranks",
                        strategy.name, model.variable(entry.variable).name));
}

}  // namespace

std::string signature_table(const Strategy& strategy, const Model& model) {
  expect_ranks_only(strategy, model);
  return Table(strategy, model).text();
}

}  // namespace simsync
