#include "strategies/export/common.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/blocks.hpp"
#include "models/precision.hpp"
#include "strategies/names.hpp"
#include "strategies/split_layers.hpp"
#include "strategies/wire_bytes.hpp"

namespace simsync::detail {
namespace {

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
  if (question.model.variables().empty()) return;
  const Variable& first = question.model.variable(0);
  const bool single = question.optimizer.fp32_gradients;
  const double gradient = sharded ? reduced_width(first, sharding, question.precision, single)
                                  : gradient_width(first, question.precision, single);
  const double parameter =
      sharded ? gathered_width(first, sharding, question.precision) : weight_width(first, question.precision);
  gradient_bytes = std::llround(gradient);
  parameter_bytes = std::llround(parameter);
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
