#include "strategies/stage_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "models/blocks.hpp"

namespace simsync {
namespace {

/// The layers of a run of the whole model, from `begin` to before `end`.
struct Run {
  LayerId begin = 0;
  LayerId end = 0;
};

/// Operations of the matrix products of each block, and of what follows the last one.
BlockCosts product_costs(const Model& model, const std::vector<Block>& blocks) {
  const auto products = [&](LayerId begin, LayerId end) {
    double sum = 0.0;
    for (LayerId id = begin; id < end; ++id)
      if (model.layer(id).kind == LayerKind::Dense) sum += model.layer(id).forward_flops.value();
    return sum;
  };
  BlockCosts out;
  for (const Block& block : blocks) out.blocks.push_back(products(block.first, block.last + 1));
  out.after = products(blocks.back().last + 1, model.layer_count());
  return out;
}

std::vector<Run> runs_of(const Model& model, const ModelParallel& parallel) {
  if (parallel.pipeline * parallel.chunks == 1) return {{0, model.layer_count()}};
  const std::vector<Block> blocks = blocks_of(model);
  const BlockCounts counts = blocks_by_chunk(model, parallel);
  std::vector<Run> out;
  std::size_t next = 0;
  for (const int of_chunk : counts) {
    const LayerId begin = out.empty() ? 0 : out.back().end;
    next += static_cast<std::size_t>(of_chunk);
    out.push_back({begin, next == blocks.size() ? blocks.back().last + 1 : blocks[next].first});
  }
  out.back().end = model.layer_count();
  return out;
}

/// A dense layer that multiplies with the table of an embedding.
bool is_tied(const Model& model, const Layer& layer) {
  return layer.kind == LayerKind::Dense && layer.dense_rows > 0.0 &&
         std::none_of(layer.variables.begin(), layer.variables.end(),
                      [&](VariableId id) { return model.variable(id).shape.size() > 1; });
}

/// The table that tied layers multiply with: the first of an embedding. None: no layer is tied.
std::optional<VariableId> table_of(const Model& model) {
  bool tied = false;
  for (LayerId id = 0; id < model.layer_count(); ++id) tied = tied || is_tied(model, model.layer(id));
  if (!tied) return std::nullopt;
  for (const Variable& variable : model.variables())
    if (model.layer(variable.layer).kind == LayerKind::Embedding)
      return static_cast<VariableId>(&variable - model.variables().data());
  return std::nullopt;
}

class Builder {
public:
  Builder(const Model& model, const ModelParallel& parallel)
      : whole_(model),
        parallel_(parallel),
        splits_(splits_of(model, parallel)),
        steps_(layer_boxings(model, splits_, parallel)),
        runs_(runs_of(model, parallel)),
        table_(table_of(model)) {}

  StageModel stage(int number) {
    StageModel out{.model = Model(whole_.name(), whole_.default_batch(), whole_.sample_unit()),
                   .chunks = {},
                   .layer_of = {},
                   .variable_of = {},
                   .gradient_sum = {},
                   .boxing = {},
                   .shared_copy = {}};
    local_.clear();
    for (int chunk = 0; chunk < parallel_.chunks; ++chunk) {
      const int of_model = chunk * parallel_.pipeline + number;
      const auto run = static_cast<std::size_t>(of_model);
      StageChunk here{.begin = out.model.layer_count()};
      if (run > 0) here.received_bytes = receive(out, runs_[run]);
      for (LayerId id = runs_[run].begin; id < runs_[run].end; ++id) add(out, id);
      here.end = out.model.layer_count();
      out.chunks.push_back(here);
    }
    if (parallel_.pipeline > 1) share_table(out);
    return out;
  }

private:
  /// Tensors of earlier chunks that a run reads, as one layer that leaves them. Returns bytes per sample.
  double receive(StageModel& out, const Run& run) {
    std::vector<LayerId> read;
    for (LayerId id = run.begin; id < run.end; ++id) {
      const auto [begin, end] = boost::inv_adjacent_vertices(id, whole_.graph());
      for (auto input = begin; input != end; ++input)
        if (*input < run.begin && std::find(read.begin(), read.end(), *input) == read.end()) read.push_back(*input);
    }
    Layer layer{.name = fmt::format("received {}", whole_.layer(run.begin).name), .kind = LayerKind::Elementwise};
    for (const LayerId id : read) layer.output_bytes += part_of(whole_.layer(id), splits_[id], parallel_).output_bytes;
    const double bytes = layer.output_bytes;
    const LayerId id = out.model.add_layer(std::move(layer), {});
    for (const LayerId whole : read) local_[whole] = id;
    out.layer_of.emplace_back();
    out.boxing.before_forward.emplace_back();
    out.boxing.before_backward.emplace_back();
    return bytes;
  }

  void add(StageModel& out, LayerId id) {
    std::vector<LayerId> inputs;
    const auto [begin, end] = boost::inv_adjacent_vertices(id, whole_.graph());
    for (auto input = begin; input != end; ++input) inputs.push_back(local_.at(*input));
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    const Layer& layer = whole_.layer(id);
    const LayerId local = out.model.add_layer(part_of(layer, splits_[id], parallel_), inputs);
    local_[id] = local;
    out.layer_of.emplace_back(id);
    out.boxing.before_forward.push_back(steps_.before_forward[id]);
    out.boxing.before_backward.push_back(steps_.before_backward[id]);
    const std::size_t held = layer.variables.size() / static_cast<std::size_t>(share_of_experts(layer));
    for (std::size_t i = 0; i < held; ++i) add_variable(out, layer.variables[i], local, splits_[id]);
    const bool copies = is_tied(whole_, layer) && table_ && !local_.contains(whole_.variable(*table_).layer);
    if (!copies) return;
    add_variable(out, *table_, local, splits_[id] == LayerSplit::Columns ? LayerSplit::Vocabulary : splits_[id]);
    out.shared_copy = out.model.variables().size() - 1;
  }

  /// Among how many ranks the matrices of a layer are shared out.
  [[nodiscard]] int share_of_experts(const Layer& layer) const {
    if (layer.experts == 0) return 1;
    if (layer.experts % parallel_.experts != 0)
      throw PlanError(fmt::format("the {} experts of layer '{}' do not divide among {} expert-parallel ranks",
                                  layer.experts, layer.name, parallel_.experts));
    return parallel_.experts;
  }

  void add_variable(StageModel& out, VariableId id, LayerId layer, LayerSplit split) {
    Variable part = whole_.variable(id);
    part.shape = part_of(part, split, parallel_.tensor);
    part.layer = layer;
    part.lookups_per_sample /= parallel_.context;
    out.model.add_variable(std::move(part));
    out.variable_of.push_back(id);
    const bool of_tokens = split == LayerSplit::Tokens && parallel_.tensor > 1;
    const bool of_expert = parallel_.experts > 1 && whole_.layer(whole_.variable(id).layer).experts > 0;
    out.gradient_sum.push_back(of_expert   ? GradientSum::Experts
                               : of_tokens ? GradientSum::Stage
                                           : GradientSum::Replicas);
  }

  /// The owner's end of a tied table.
  void share_table(StageModel& out) const {
    for (VariableId id = 0; table_ && !out.shared_copy && id < out.variable_of.size(); ++id)
      if (out.variable_of[id] == *table_) out.shared_copy = id;
  }

  const Model& whole_;
  const ModelParallel& parallel_;
  std::vector<LayerSplit> splits_;
  LayerBoxings steps_;
  std::vector<Run> runs_;
  std::optional<VariableId> table_;
  std::map<LayerId, LayerId> local_;  ///< layer of the whole model -> of the stage's
};

}  // namespace

BlockCounts blocks_by_chunk(const Model& model, const ModelParallel& parallel) {
  const int chunks = parallel.pipeline * parallel.chunks;
  const std::vector<Block> blocks = blocks_of(model);
  const auto count = static_cast<int>(blocks.size());
  const int of_ends = parallel.blocks == StageBlocks::WithEnds ? 1 : 0;
  const bool by_number = parallel.blocks == StageBlocks::Even || of_ends > 0;
  if (blocks.empty() || (by_number && count + 2 * of_ends < chunks))
    throw PlanError(
        fmt::format("model '{}' has {} blocks (layers whose names agree up to a number), which {} stages "
                    "of {} chunk{} cannot share",
                    model.name(), count, parallel.pipeline, parallel.chunks, parallel.chunks == 1 ? "" : "s"));
  if (parallel.blocks == StageBlocks::Threshold) return threshold_blocks(product_costs(model, blocks), chunks);
  if (parallel.blocks == StageBlocks::Balanced) return balanced_blocks(product_costs(model, blocks), chunks);
  return spread_blocks(count, chunks, {.before = of_ends, .after = of_ends});
}

std::vector<StageModel> stage_models(const Model& model, const ModelParallel& parallel) {
  if (parallel.experts > 1 && experts_of(model) == 0)
    throw PlanError(
        fmt::format("model '{}' has no experts that {} ranks could share out", model.name(), parallel.experts));
  if (const auto obstacle = obstacle_to_context(model, parallel))
    throw PlanError(fmt::format("{} context-parallel ranks cannot share out the tokens of model '{}': {}",
                                parallel.context, model.name(), *obstacle));
  std::vector<StageModel> out;
  Builder builder(model, parallel);
  for (int stage = 0; stage < parallel.pipeline; ++stage) out.push_back(builder.stage(stage));
  return out;
}

Strategy stage_strategy(const Strategy& whole, const StageModel& part) {
  Strategy out{.name = whole.name, .graph = whole.graph, .variables = {}};
  for (VariableId id = 0; id < part.variable_of.size(); ++id) {
    VariableStrategy entry = whole.variables[part.variable_of[id]];
    entry.variable = id;
    entry.shards.front().elements = part.model.variable(id).elements();
    out.variables.push_back(std::move(entry));
  }
  return out;
}

}  // namespace simsync
