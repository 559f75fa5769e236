// Data parallelism with shared out state: fsdp, which is ZeRO by its stages.
#include "base/parse_units.hpp"
#include "strategies/families.hpp"

namespace simsync {
namespace {

constexpr const char* kGroup = "group";
constexpr const char* kAuto = "auto";

/// Ranks of a shard group: `all`, `node` or a number. 0: all. They hold the same part of the model.
int shard_group(const BuildRequest& request, const ModelParallel& parallel, const Options& options) {
  const std::string& text = options.text(kGroup);
  const int replicas = request.workers / parallel.ranks();
  if (text == "all") return 0;
  if (text == "node") {
    const int gpus = request.cluster.group_of(request.cluster.workers(1).front().node).gpus;
    const int on_node = std::max(1, gpus / parallel.tensor);
    return replicas <= on_node ? 0 : on_node;
  }
  const auto number = parse_integer(text);
  if (!number) options.fail(kGroup, "expected all, node or a number of ranks, got '" + text + "'");
  const std::int64_t ranks = options.integer(kGroup, 1, replicas);
  if (replicas % ranks != 0)
    options.fail(kGroup, "groups of " + text + " do not divide " + std::to_string(replicas) +
                             (parallel.is_trivial() ? " workers" : " replicas"));
  return static_cast<int>(ranks);
}

std::optional<DType> dtype(const Options& options, const std::string& name) {
  Words<std::optional<DType>> words{{kAuto, std::nullopt}};
  for (const auto& [word, type] : dtype_words()) words.emplace_back(word, type);
  return options.one_of(name, words);
}

void build_fsdp(const BuildRequest& request, const Options& options, Strategy& strategy) {
  constexpr int kMostPrefetch = 1'000'000;
  Sharding& sharding = strategy.graph.sharding;
  sharding.stage = static_cast<int>(options.integer("stage", 1, 3));
  strategy.graph.parallel = model_parallel(request, options);
  sharding.group = shard_group(request, strategy.graph.parallel, options);
  sharding.reshard_after_forward = options.boolean("reshard_after_forward");
  sharding.prefetch = static_cast<int>(options.integer("prefetch", 0, kMostPrefetch));
  sharding.reduce_every_micro_step = options.boolean("reduce_every_micro_step");
  sharding.overlap_gather = options.boolean("overlap_gather");
  sharding.whole_variables = options.boolean("whole_variables");
  if (sharding.whole_variables && sharding.stage != 1) options.fail("whole_variables", "it needs stage 1");
  sharding.min_unit = options.bytes("min_unit", 0);
  sharding.param_dtype = dtype(options, "param_dtype");
  sharding.reduce_dtype = dtype(options, "reduce_dtype");
  for (VariableId id = 0; id < request.model.variables().size(); ++id) {
    strategy.variables.push_back(whole_variable(request.model, id, ShardedSynchronizer{}));
    strategy.variables.back().sparse_as_dense = request.model.variable(id).sparse;
  }
}

}  // namespace

std::vector<BuilderInfo> sharded_builders() {
  return {
      {"fsdp",
       "Ranks share out optimizer state, gradients and parameters, and gather a block's parameters when it is its "
       "turn (PyTorch FullyShardedDataParallel; ZeRO by its stages).",
       joined(
           {{"stage", "3", "of ZeRO: 1 shares out optimizer state, 2 gradients, too, 3 parameters, too"},
            {kGroup, "all",
             "ranks that share one copy: all, node (those of a node: hybrid shard) or a number of consecutive ranks"},
            {"reshard_after_forward", "true",
             "stage 3. true: a block's parameters are freed after its forward pass and gathered again for its backward "
             "pass; false: kept until then"},
            {"prefetch", "1", "stage 3: blocks that are gathered ahead of the one that is computed"},
            {"reduce_every_micro_step", "true",
             "stages 2 and 3. true: gradients are reduced in every micro-step; false: kept whole and reduced in the "
             "last "
             "(PyTorch's no_sync)"},
            {"overlap_gather", "true",
             "stages 1 and 2. true: a block waits for its own parameters; false: the step begins with all (DeepSpeed)"},
            {"whole_variables", "false",
             "stage 1. true: a rank owns whole variables and broadcasts them after its update (InternEvo, PyTorch's "
             "ZeroRedundancyOptimizer); false: every variable is shared out evenly and gathered"},
            {"min_unit", "0B", "neighboring blocks are merged until they have so many bytes of parameters"},
            {"param_dtype", kAuto,
             "gathered parameters: float32, float16, bfloat16 or auto (two bytes in half precision and amp)"},
            {"reduce_dtype", kAuto, "reduced gradients: the same choices"},
            {"algorithm", "auto", "of the all-reduce over replicas of hybrid shard: as ddp has it"}},
           model_parallel_options()),
       build_fsdp}};
}

}  // namespace simsync
