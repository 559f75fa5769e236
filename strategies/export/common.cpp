#include "strategies/export/common.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/blocks.hpp"
#include "models/precision.hpp"
#include "strategies/names.hpp"
#include "strategies/split_layers.hpp"

namespace simsync::detail {
namespace {

/// Of what is sent in two bytes under half precision unless the strategy says otherwise.
std::int64_t sent_bytes(const ExportQuestion& question, const std::optional<DType>& chosen) {
  constexpr std::int64_t kHalf = 2;
  if (chosen) return size_of(*chosen);
  if (has_half_activations(question.precision)) return kHalf;
  return question.model.variables().empty() ? size_of(DType::Float32) : size_of(question.model.variable(0).dtype);
}

void check_shard(const std::string& name, const VariableStrategy& entry, bool sharded, FrameworkSettings& out) {
  const Synchronizer& how = entry.shards.front().synchronizer;
  refuse_if(std::holds_alternative<PsSynchronizer>(how), fmt::format("variable '{}' is on a parameter server", name),
            out);
  refuse_if(std::holds_alternative<SfbSynchronizer>(how),
            fmt::format("the gradient of '{}' is sent as sufficient factors", name), out);
  refuse_if(std::holds_alternative<AllReduceSynchronizer>(how) && sharded,
            fmt::format("variable '{}' is all-reduced while others are sharded", name), out);
  refuse_if(entry.shards.size() > 1, fmt::format("variable '{}' is cut into {} shards", name, entry.shards.size()),
            out);
}

/// The first variable that is handled in a way that none of them has.
void check_variables(const ExportQuestion& question, FrameworkSettings& out) {
  const bool sharded = has_sharded(question.strategy);
  for (const VariableStrategy& entry : question.strategy.variables) {
    const Variable& variable = question.model.variable(entry.variable);
    check_shard(variable.name, entry, sharded, out);
    refuse_if(travels_sparse(variable, entry),
              fmt::format("of the gradient of '{}' only the looked-up rows travel", variable.name), out);
    refuse_if(entry.compressor != Compressor::None,
              fmt::format("the gradient of '{}' is sent as {}", variable.name, name_of(entry.compressor)), out);
    if (!out.refusals.empty()) return;
  }
}

void check_algorithm(CollectiveAlgorithm algorithm, FrameworkSettings& out) {
  switch (algorithm) {
    case CollectiveAlgorithm::Auto:
      return;
    case CollectiveAlgorithm::Ring:
    case CollectiveAlgorithm::DoubleBinaryTree:
      note_if(true,
              fmt::format("NCCL_ALGO={} in the environment forces the plan's algorithm",
                          algorithm == CollectiveAlgorithm::Ring ? "Ring" : "Tree"),
              out);
      return;
    default:
      refuse_if(true, fmt::format("NCCL cannot be told the algorithm {}", name_of(algorithm)), out);
  }
}

void check_graph(const ExportQuestion& question, FrameworkSettings& out) {
  const GraphStrategy& graph = question.strategy.graph;
  const bool sharded = has_sharded(question.strategy);
  const FusionKind fusion = graph.fusion.kind;
  refuse_if(!sharded && (fusion == FusionKind::Cycle || fusion == FusionKind::MergedGradient),
            fmt::format("gradients are merged by time ({})", name_of(fusion)), out);
  refuse_if(graph.scheduling.ordering == Ordering::Priority || graph.scheduling.partition.count > 0,
            "gradients are cut and sent by priority", out);
  refuse_if(graph.gate == Gate::PerVariable, "layers of the next step wait for their own variables only", out);
  refuse_if(question.batch % graph.micro_steps != 0,
            fmt::format("a batch of {} does not split into {} micro-steps", question.batch, graph.micro_steps), out);
  check_algorithm(graph.algorithm, out);
}

/// Heads of keys and values of a model's attention, by what it reads; 0 where queries, keys and values are one tensor.
std::int64_t key_heads_of(const Model& model) {
  for (LayerId id = 0; id < model.layer_count(); ++id) {
    const Layer& layer = model.layer(id);
    if (layer.kind != LayerKind::Attention || layer.operation.products.empty()) continue;
    const auto [begin, end] = boost::inv_adjacent_vertices(id, model.graph());
    double least = 0.0;
    double most = 0.0;
    for (auto input = begin; input != end; ++input) {
      const double bytes = model.layer(*input).output_bytes;
      least = input == begin ? bytes : std::min(least, bytes);
      most = std::max(most, bytes);
    }
    if (std::distance(begin, end) < 2) return 0;
    return std::llround(static_cast<double>(layer.operation.products.front().heads) * least / most);
  }
  return 0;
}

}  // namespace

PlanNumbers::PlanNumbers(const ExportQuestion& question)
    : parallel(question.strategy.graph.parallel),
      replicas(question.strategy.graph.replicas()),
      micro_steps(question.strategy.graph.micro_steps),
      micro_batch(question.batch / micro_steps),
      global_batch(question.batch * question.strategy.graph.batches()),
      blocks(static_cast<int>(blocks_of(question.model).size())),
      sharded(has_sharded(question.strategy)),
      overlaps(question.strategy.graph.overlap == Overlap::WaitFree) {
  const Sharding& sharding = question.strategy.graph.sharding;
  stage = sharded ? sharding.stage : 0;
  group = sharded ? sharding.group_of(replicas) : 1;
  if (sharded) {
    gradient_bytes = sent_bytes(question, sharding.reduce_dtype);
    parameter_bytes = sent_bytes(question, sharding.param_dtype);
  } else if (!question.model.variables().empty()) {
    gradient_bytes = parameter_bytes = size_of(question.model.variable(0).dtype);
  }
}

void refuse_if(bool condition, const std::string& what, FrameworkSettings& out) {
  if (condition) out.refusals.push_back(what);
}

void note_if(bool condition, const std::string& what, FrameworkSettings& out) {
  if (condition) out.notes.push_back(what);
}

FrameworkSettings begin_settings(const ExportQuestion& question) {
  FrameworkSettings out;
  check_variables(question, out);
  check_graph(question, out);
  refuse_if(!question.strategy.graph.parallel.splits.empty(),
            "it splits layers by its own rule, not " + text_of(question.strategy.graph.parallel.splits), out);
  return out;
}

void expect_transformer(const Model& model, FrameworkSettings& out) {
  const std::vector<Block> blocks = blocks_of(model);
  const bool attends = !blocks.empty() && std::all_of(blocks.begin(), blocks.end(), [&](const Block& block) {
    for (LayerId id = block.first; id <= block.last; ++id)
      if (model.layer(id).kind == LayerKind::Attention) return true;
    return false;
  });
  refuse_if(!attends, fmt::format("it trains transformers, and model '{}' is none", model.name()), out);
}

void expect_whole_key_heads(const Model& model, int tensor, FrameworkSettings& out) {
  const std::int64_t heads = key_heads_of(model);
  refuse_if(heads > 0 && heads % tensor != 0,
            fmt::format("{} tensor-parallel ranks do not divide {} heads of keys and values", tensor, heads), out);
}

void expect_sequence_with_experts(const Model& model, const ModelParallel& parallel, FrameworkSettings& out) {
  refuse_if(experts_of(model) > 0 && parallel.tensor > 1 && !parallel.sequence,
            "with experts its tensor parallelism is sequence-parallel, too (sequence=true)", out);
}

void expect_balanced_context(const ModelParallel& parallel, FrameworkSettings& out) {
  refuse_if(
      parallel.context > 1 && !parallel.context_balanced,
      "its context-parallel ranks have a run of tokens from the front and one from the back (context_balanced=true)",
      out);
}

void note_padded_vocabulary(const Model& model, int tensor, FrameworkSettings& out) {
  constexpr std::int64_t kEach = 128;
  const std::int64_t unit = kEach * tensor;
  for (const Variable& variable : model.variables()) {
    if (model.layer(variable.layer).kind != LayerKind::Embedding || variable.shape.size() != 2) continue;
    const std::int64_t words = variable.shape.front();
    const std::int64_t padded = (words + unit - 1) / unit * unit;
    return note_if(padded != words,
                   fmt::format("it pads the {} words to {}, which model.vocabulary={} predicts", words, padded, padded),
                   out);
  }
}

void set_core_recompute(Recompute recompute, const std::function<void(const std::string&, SettingValue)>& set,
                        FrameworkSettings& out) {
  switch (recompute) {
    case Recompute::None:
      return;
    case Recompute::Selective:
      set("granularity", std::string("selective"));
      return note_if(true, "it recomputes the core of attention alone; the plan recomputes norms and activations, too",
                     out);
    case Recompute::SelectiveOp:
      return refuse_if(true, "it does not recompute every second product (recompute=selective-op)", out);
    case Recompute::Full:
      set("granularity", std::string("full"));
      set("method", std::string("uniform"));
      set("num_layers", std::int64_t{1});
      return;
  }
}

}  // namespace simsync::detail
