// Hybrid plans as settings of frameworks, what they cannot express, and tables of signatures.
#include <algorithm>
#include <map>
#include <optional>

#include "base/csv.hpp"
#include "base/error.hpp"
#include "models/reader.hpp"
#include "platforms/reader.hpp"
#include "strategies/builders.hpp"
#include "strategies/export/framework.hpp"
#include "strategies/export/signature_table.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

using Chosen = std::map<std::string, std::string>;

constexpr OptimizerState kAdam{.optimizer = Optimizer::Adam, .master_weights = true};

/// A strategy of gpt2 (12 blocks) on so many ranks of a DGX H100 cluster.
struct Case {
  Model model;
  Strategy strategy;
  std::int64_t batch;
  std::string precision;
  bool fp32_gradients = false;

  Case(const std::string& builder, int workers, std::int64_t of_batch, const Chosen& options,
       std::string of_precision = "bf16", const std::string& name = "gpt2")
      : model(find_model(name)), batch(of_batch), precision(std::move(of_precision)) {
    const Cluster cluster = grown_to(find_cluster("dgx-h100"), workers);
    strategy = build_strategy(
        builder, {.model = model, .cluster = cluster, .workers = workers, .batch = batch, .options = options});
  }
  [[nodiscard]] Case with_fp32_gradients() const {
    Case out = *this;
    out.fp32_gradients = true;
    return out;
  }
  [[nodiscard]] ExportQuestion question() const {
    OptimizerState optimizer = kAdam;
    optimizer.fp32_gradients = fp32_gradients;
    return {.strategy = strategy, .model = model, .batch = batch, .precision = precision, .optimizer = optimizer};
  }
  [[nodiscard]] FrameworkSettings settings(Framework framework) const {
    return framework_settings(framework, question());
  }
  [[nodiscard]] std::string text(Framework framework) const { return exported_text(framework, question()); }
};

/// The one refusal; `none`, or all of them, where there is not one.
std::string refusal(const Case& asked, Framework framework) {
  const std::vector<std::string> all = asked.settings(framework).refusals;
  if (all.size() == 1) return all.front();
  std::string out = all.empty() ? "none" : "";
  for (const std::string& one : all) out += one + "; ";
  return out;
}

const Chosen kHybrid{{"tensor", "2"}, {"pipeline", "4"}, {"micro_steps", "8"}, {"stage", "1"}, {"sequence", "true"}};

Chosen with(Chosen options, const Chosen& more) {
  for (const auto& [name, value] : more) options[name] = value;
  return options;
}

}  // namespace

TEST_CASE("a hybrid plan as flags of Megatron-LM", "[export]") {
  // 16 ranks / (2 x 4) are two replicas: 2 x 16 samples in a step, and 16 / 8 in a micro-step. Gradients travel in
  // bf16.
  const Case plan("fsdp", 16, 16, with(kHybrid, {{"recompute", "full"}}));
  CHECK(plan.text(Framework::Megatron) ==
        "--tensor-model-parallel-size 2\n"
        "--pipeline-model-parallel-size 4\n"
        "--sequence-parallel\n"
        "--micro-batch-size 2\n"
        "--global-batch-size 32\n"
        "--use-distributed-optimizer\n"
        "--overlap-grad-reduce\n"
        "--overlap-param-gather\n"
        "--recompute-granularity full\n"
        "--recompute-method uniform\n"
        "--recompute-num-layers 1\n"
        "--bf16\n"
        "--grad-reduce-in-bf16\n"
        "--optimizer adam\n");
}

TEST_CASE("model chunks of Megatron-LM", "[export]") {
  // 12 blocks on 4 stages of 3 chunks are one block each; on 4 stages of 2 chunks they are 2, 2, 2, 2, 1, 1, 1, 1.
  const Chosen interleaved = with(kHybrid, {{"schedule", "interleaved"}});
  CHECK_THAT(Case("fsdp", 16, 16, with(interleaved, {{"chunks", "3"}})).text(Framework::Megatron),
             ContainsSubstring("--num-layers-per-virtual-pipeline-stage 1\n"));
  CHECK_THAT(Case("fsdp", 16, 16, with(interleaved, {{"chunks", "2"}})).text(Framework::Megatron),
             ContainsSubstring("--pipeline-model-parallel-layout Et*2|t*2|t*2|t*2|t*1|t*1|t*1|t*1L\n"));
  // On five stages: 3, 3, 2, 2, 2.
  CHECK_THAT(Case("ddp", 5, 16, {{"pipeline", "5"}, {"micro_steps", "8"}}).text(Framework::Megatron),
             ContainsSubstring("--pipeline-model-parallel-layout Et*3|t*3|t*2|t*2|t*2L\n"));
  CHECK(refusal(Case("fsdp", 16, 16, with(kHybrid, {{"schedule", "gpipe"}})), Framework::Megatron) ==
        "it has the schedules 1f1b and interleaved, not gpipe");
}

TEST_CASE("data parallelism of Megatron-LM", "[export]") {
  // 25 MiB are 6,553,600 gradients in fp32, in which those of bf16 add up by default, and twice as many in bf16.
  const Case bf16("ddp", 8, 16, {});
  const std::string sums = bf16.with_fp32_gradients().text(Framework::Megatron);
  CHECK_THAT(sums, ContainsSubstring("--overlap-grad-reduce\n--ddp-bucket-size 6553600\n"));
  CHECK_THAT(sums, !ContainsSubstring("--grad-reduce-in-bf16"));
  CHECK_THAT(bf16.text(Framework::Megatron),
             ContainsSubstring("--ddp-bucket-size 13107200\n--bf16\n--grad-reduce-in-bf16\n"));
  const Case fp16("ddp", 8, 16, {}, "fp16");
  CHECK_THAT(fp16.with_fp32_gradients().text(Framework::Megatron),
             ContainsSubstring("--fp16\n--accumulate-allreduce-grads-in-fp32\n"));
  CHECK_THAT(fp16.text(Framework::Megatron), !ContainsSubstring("--accumulate-allreduce-grads-in-fp32"));
  CHECK(refusal(bf16, Framework::NeMo) == "it reduces gradients of bf16 weights in fp32 (fp32_gradients=true)");
  CHECK(refusal(bf16.with_fp32_gradients(), Framework::NeMo) == "none");
  CHECK(refusal(fp16, Framework::NeMo) == "none");
  // Eight replicas in shard groups of two: four instances.
  CHECK_THAT(Case("fsdp", 8, 16, {{"stage", "3"}, {"group", "2"}}).text(Framework::Megatron),
             ContainsSubstring("--use-distributed-optimizer\n--use-megatron-fsdp\n"
                               "--data-parallel-sharding-strategy optim_grads_params\n--ckpt-format fsdp_dtensor\n"
                               "--num-distributed-optimizer-instances 4\n"));
  CHECK(refusal(Case("fsdp", 8, 16, {{"reshard_after_forward", "false"}}), Framework::Megatron) ==
        "Megatron-FSDP frees the parameters of a block after its forward pass");
  CHECK(refusal(Case("ddp", 8, 16, {}, "amp"), Framework::Megatron) == "it is told fp32, fp16, bf16 or fp8, not amp");
  CHECK(refusal(Case("ddp", 8, 16, {{"recompute", "selective-op"}}), Framework::Megatron) ==
        "it does not recompute every second product (recompute=selective-op)");
  // One replica has nobody to share with.
  CHECK_THAT(Case("fsdp", 8, 16, {{"tensor", "4"}, {"pipeline", "2"}}).text(Framework::Megatron),
             !ContainsSubstring("distributed-optimizer"));
}

TEST_CASE("a hybrid plan as a file of NeMo", "[export]") {
  const Case plan("fsdp", 16, 16, with(kHybrid, {{"schedule", "interleaved"}, {"chunks", "3"}}));
  CHECK(plan.text(Framework::NeMo) ==
        "trainer:\n"
        "  precision: bf16\n"
        "model:\n"
        "  megatron_amp_O2: true\n"
        "  micro_batch_size: 2\n"
        "  global_batch_size: 32\n"
        "  tensor_model_parallel_size: 2\n"
        "  pipeline_model_parallel_size: 4\n"
        "  virtual_pipeline_model_parallel_size: 3\n"
        "  sequence_parallel: true\n"
        "  optim:\n"
        "    name: mcore_distributed_optim\n"
        "    overlap_grad_sync: true\n"
        "    overlap_param_gather: true\n"
        "    grad_sync_dtype: bf16\n");
  CHECK_THAT(Case("fsdp", 8, 16, {{"reduce_dtype", "float32"}}).text(Framework::NeMo),
             ContainsSubstring("  fsdp: true\n  fsdp_sharding_strategy: full\n  fsdp_grad_reduce_dtype: 32\n"));
  // Its FSDP does not go with O2, and is told the precision of gradients by word where it is not fp32.
  CHECK_THAT(Case("fsdp", 8, 16, {}).text(Framework::NeMo), ContainsSubstring("  megatron_amp_O2: false\n"));
  for (const auto& [precision, word] : {std::pair{"bf16", "bf16"}, {"amp", "bf16"}, {"fp16", "16"}, {"fp32", "32"}})
    CHECK_THAT(Case("fsdp", 8, 16, {}, precision).text(Framework::NeMo),
               ContainsSubstring(std::string("fsdp_grad_reduce_dtype: ") + word + "\n"));
  CHECK(refusal(Case("ddp", 5, 16, {{"pipeline", "5"}}), Framework::NeMo) ==
        "its stages have as many blocks each, and 5 do not share 12");
  CHECK(refusal(Case("fsdp", 8, 16, {{"group", "4"}}), Framework::NeMo) ==
        "its FSDP does not support hybrid sharding (groups of ranks)");
  CHECK(refusal(Case("fsdp", 8, 16, {{"pipeline", "2"}}), Framework::NeMo) ==
        "its FSDP does not support pipeline parallelism");
}

TEST_CASE("a hybrid plan as a file of torchtitan", "[export]") {
  // 32 ranks / (2 x 4): four replicas in two groups of two. A pipeline takes its whole batch at once.
  const Chosen options{{"tensor", "2"},
                       {"pipeline", "4"},
                       {"micro_steps", "8"},
                       {"group", "2"},
                       {"sequence", "true"},
                       {"reduce_every_micro_step", "false"},
                       {"schedule", "interleaved"},
                       {"chunks", "3"},
                       {"recompute", "selective-op"},
                       {"reduce_dtype", "float32"}};
  CHECK(Case("fsdp", 32, 16, options, "amp").text(Framework::Torchtitan) ==
        "[training]\n"
        "local_batch_size = 16\n"
        "global_batch_size = 64\n"
        "dtype = \"float32\"\n"
        "mixed_precision_param = \"bfloat16\"\n"
        "\n"
        "[parallelism]\n"
        "data_parallel_replicate_degree = 2\n"
        "data_parallel_shard_degree = 2\n"
        "fsdp_reshard_after_forward = \"always\"\n"
        "tensor_parallel_degree = 2\n"
        "pipeline_parallel_degree = 4\n"
        "pipeline_parallel_schedule = \"Interleaved1F1B\"\n"
        "pipeline_parallel_microbatch_size = 2\n"
        "pipeline_parallel_first_stage_less_layers = 0\n"
        "pipeline_parallel_last_stage_less_layers = 0\n"
        "pipeline_parallel_layers_per_stage = 1\n"
        "\n"
        "[activation_checkpoint]\n"
        "mode = \"selective\"\n"
        "selective_ac_option = \"op\"\n");
  // Without a pipeline a rank's batch is a micro-step's: 16 / 8.
  CHECK_THAT(
      Case("fsdp", 8, 16, {{"micro_steps", "8"}, {"reduce_dtype", "float32"}}, "amp").text(Framework::Torchtitan),
      ContainsSubstring("local_batch_size = 2\nglobal_batch_size = 128\n"));
}

TEST_CASE("what torchtitan cannot follow", "[export]") {
  const auto why = [](const std::string& builder, const Chosen& options, const std::string& precision = "amp") {
    return refusal(Case(builder, 16, 16, options, precision), Framework::Torchtitan);
  };
  const Chosen single{{"reduce_dtype", "float32"}};
  CHECK(why("fsdp", with(single, {{"stage", "1"}})) == "it shares out gradients, too: ZeRO stage 2 or 3");
  CHECK(why("fsdp", {}) == "it reduces gradients in fp32 (reduce_dtype=float32)");
  CHECK(why("fsdp", with(single, {{"tensor", "2"}})) ==
        "its tensor parallelism is sequence-parallel, too (sequence=true)");
  CHECK(why("fsdp", with(single, {{"pipeline", "2"}, {"micro_steps", "4"}})) ==
        "with a pipeline it reduces gradients once a step (reduce_every_micro_step=false)");
  CHECK(why("fsdp", with(single, {{"micro_steps", "4"}, {"reduce_every_micro_step", "false"}})) ==
        "without a pipeline it reduces gradients in every micro-step");
  CHECK(why("fsdp", with(single, {{"stage", "2"}, {"micro_steps", "4"}})) ==
        "it gathers parameters in every micro-step, ZeRO stage 2 once a step");
  CHECK(
      why("fsdp", with(single, {{"pipeline", "2"}, {"schedule", "zero-bubble"}})) ==
      "its zero-bubble schedules (InterleavedZeroBubble, ZBVZeroBubble) have two or more model chunks on a stage, the "
      "plan's has one");
  CHECK(why("fsdp", with(single, {{"recompute", "selective"}})) ==
        "it recomputes every second product, too (recompute=selective-op)");
  // 12 blocks on 8 model chunks are 2 at most, and chunks of 2 would be 6.
  CHECK(why("fsdp", with(single, {{"pipeline", "2"},
                                  {"schedule", "interleaved"},
                                  {"chunks", "4"},
                                  {"micro_steps", "2"},
                                  {"reduce_every_micro_step", "false"}})) ==
        "it takes blocks per model chunk, and 2 a chunk do not make 8 chunks of 12 blocks");
  CHECK(why("ddp", {{"pipeline", "2"}}) == "its DDP goes with no tensor, pipeline or context parallelism");
  CHECK(why("ddp", {}, "fp16") == "it is told fp32, amp or bf16, not fp16");
}

TEST_CASE("data parallelism as a file of DeepSpeed", "[export]") {
  // Eight replicas of 16 samples in four micro-steps.
  CHECK(Case("fsdp", 8, 16, {{"stage", "2"}, {"micro_steps", "4"}, {"overlap_gather", "false"}})
            .text(Framework::DeepSpeed) ==
        "{\n"
        "  \"train_batch_size\": 128,\n"
        "  \"train_micro_batch_size_per_gpu\": 4,\n"
        "  \"gradient_accumulation_steps\": 4,\n"
        "  \"communication_data_type\": \"bf16\",\n"
        "  \"bf16\": {\n"
        "    \"enabled\": true\n"
        "  },\n"
        "  \"zero_optimization\": {\n"
        "    \"stage\": 2,\n"
        "    \"overlap_comm\": true\n"
        "  }\n"
        "}\n");
  // It trains any model.
  CHECK_THAT(Case("ddp", 8, 16, {}, "fp32", "vgg16").text(Framework::DeepSpeed), ContainsSubstring("\"stage\": 0\n"));
  const Case groups("fsdp", 8, 16, {{"group", "4"}});
  CHECK_THAT(groups.text(Framework::DeepSpeed), ContainsSubstring("\"mics_shard_size\": 4\n"));
  CHECK(groups.settings(Framework::DeepSpeed).notes.back() ==
        "the program has to create the model inside of deepspeed.zero.MiCS_Init");
  CHECK(refusal(Case("fsdp", 8, 16, {{"tensor", "2"}}), Framework::DeepSpeed) ==
        "its tensor parallelism (tensor_parallel.autotp_size) splits no table by its rows, as the plan does");
  CHECK(refusal(Case("fsdp", 8, 16, {{"pipeline", "2"}}), Framework::DeepSpeed) ==
        "pipeline stages are an argument of PipelineModule in the program, not of its file");
  CHECK(refusal(Case("fsdp", 8, 16, {{"micro_steps", "4"}, {"reduce_every_micro_step", "false"}}),
                Framework::DeepSpeed) == "from ZeRO stage 2 on it reduces gradients in every micro-step");
}

TEST_CASE("experts as frameworks are told of them", "[export]") {
  const auto mixtral = [](const Chosen& options) {
    return Case("fsdp", 16, 16, with({{"stage", "1"}, {"experts", "4"}}, options), "bf16", "mixtral-8x7b");
  };
  CHECK_THAT(mixtral({}).text(Framework::Megatron),
             ContainsSubstring("--expert-model-parallel-size 4\n--moe-token-dispatcher-type alltoall\n"));
  CHECK_THAT(mixtral({}).text(Framework::NeMo), ContainsSubstring("  expert_model_parallel_size: 4\n"));
  const char* sequence = "with experts its tensor parallelism is sequence-parallel, too (sequence=true)";
  for (const Framework framework : {Framework::Megatron, Framework::NeMo}) {
    CHECK(refusal(mixtral({{"tensor", "2"}}), framework) == sequence);
    CHECK(refusal(mixtral({{"tensor", "2"}, {"sequence", "true"}}), framework) == "none");
  }
  CHECK(refusal(mixtral({}), Framework::DeepSpeed) ==
        "expert parallelism is an argument of its MoE layers (ep_size) in the program, not of its file");
  const Case plan = mixtral({});
  CHECK_THROWS_AS(signature_table(plan.strategy, plan.model), PlanError);
}

TEST_CASE("experts that a framework does not take so", "[export]") {
  const auto mixtral = [](const Chosen& options, const char* precision = "bf16") {
    return Case("fsdp", 16, 16, with({{"experts", "8"}}, options), precision, "mixtral-8x7b");
  };
  // Expert-parallel ranks of a shard group would have to be whole.
  CHECK(
      refusal(mixtral({{"stage", "1"}, {"group", "4"}}), Framework::Megatron) ==
      "its distributed optimizer shares out in groups of whole expert-parallel ranks, and 8 do not divide groups of 4");
  CHECK(refusal(mixtral({{"stage", "1"}}, "fp32"), Framework::NeMo) ==
        "it takes expert parallelism with megatron_amp_O2 only");
  CHECK_THAT(mixtral({{"stage", "1"}}).text(Framework::NeMo),
             ContainsSubstring("  moe_token_dispatcher_type: alltoall\n"));
}

TEST_CASE("context parallelism as frameworks are told of it", "[export]") {
  const auto llama = [](const Chosen& options, const char* precision = "bf16") {
    return Case("fsdp", 16, 16, with({{"stage", "3"}, {"context", "4"}}, options), precision, "llama3-8b");
  };
  const Case ring = llama({{"stage", "1"}, {"context_overlap", "true"}});
  CHECK_THAT(ring.text(Framework::Megatron), ContainsSubstring("--context-parallel-size 4\n"));
  CHECK_THAT(ring.text(Framework::Megatron), !ContainsSubstring("--cp-comm-type"));
  CHECK_THAT(llama({{"stage", "1"}}).text(Framework::Megatron), ContainsSubstring("--cp-comm-type all_gather\n"));
  CHECK_THAT(ring.text(Framework::NeMo), ContainsSubstring("  context_parallel_size: 4\n"));
  // Four batches of 16 samples; torchtitan shares out state over 4 x 4 ranks.
  CHECK_THAT(ring.text(Framework::Megatron), ContainsSubstring("--global-batch-size 64\n"));
  const std::string titan = llama({{"reduce_dtype", "float32"}}, "amp").text(Framework::Torchtitan);
  CHECK_THAT(titan, ContainsSubstring("data_parallel_shard_degree = 4\ncontext_parallel_degree = 4\n"));
  CHECK(refusal(llama({{"reduce_dtype", "float32"}, {"group", "2"}}, "amp"), Framework::Torchtitan) ==
        "it shares out state among whole groups of context-parallel ranks");
  CHECK(refusal(llama({{"stage", "1"}}), Framework::DeepSpeed) ==
        "its sequence parallelism (Ulysses) exchanges heads for tokens, not keys and values");
  const Case plan = llama({});
  CHECK_THROWS_AS(signature_table(plan.strategy, plan.model), PlanError);
}

TEST_CASE("what no framework here can follow", "[export]") {
  for (const auto& [word, framework] : framework_words()) {
    INFO(word);
    CHECK(refusal(Case("ps", 8, 16, {}), framework) == "variable 'transformer.wte/weight' is on a parameter server");
    CHECK(refusal(Case("horovod", 8, 16, {}), framework) == "gradients are merged by time (cycle)");
    CHECK(refusal(Case("ddp", 8, 16, {{"compressor", "powersgd"}}), framework) ==
          "the gradient of 'transformer.wte/weight' is sent as powersgd");
    CHECK(refusal(Case("ddp", 8, 16, {{"algorithm", "hierarchical"}}), framework) ==
          "NCCL cannot be told the algorithm hierarchical");
    CHECK(Case("ddp", 8, 16, {{"algorithm", "ring"}}).settings(framework).notes.front() ==
          "NCCL_ALGO=Ring in the environment forces the plan's algorithm");
    CHECK(Case("ps", 8, 16, {}).settings(framework).settings.empty());
  }
  CHECK(refusal(Case("ddp", 8, 16, {}, "fp32", "vgg16"), Framework::Megatron) ==
        "it trains transformers, and model 'vgg16' is none");
  CHECK_THROWS_WITH(Case("ps", 8, 16, {}).text(Framework::NeMo),
                    "NeMo 2.0.0 cannot follow strategy 'ps': variable 'transformer.wte/weight' is on a parameter "
                    "server");
}

TEST_CASE("a plan as a table of signatures", "[export]") {
  // 16 ranks: two stages, two tensor-parallel ranks, four replicas in two groups of two that share out parameters.
  const Case plan("fsdp", 16, 16, {{"tensor", "2"}, {"pipeline", "2"}, {"group", "2"}, {"sequence", "true"}});
  const CsvTable table = CsvTable::parse(signature_table(plan.strategy, plan.model), "table");
  const auto row = [&](const std::string& layer, const std::string& tensor, const std::string& name) -> std::string {
    for (std::size_t i = 0; i < table.size(); ++i) {
      const auto cell = [&](const char* column) { return std::string(table.cell(i, column)); };
      if (cell("layer") == layer && cell("tensor") == tensor && cell("name") == name)
        return cell("stage") + " " + cell("dp_replicate") + " " + cell("dp_shard") + " " + cell("tp");
    }
    return "none";
  };
  // Samples over all replicas; the embedding leaves partial sums, each rank has a part of its rows.
  CHECK(row("transformer.wte", "input", "") == "0 S(0) S(0) B");
  CHECK(row("transformer.wte", "weight", "transformer.wte/weight") == "0 B S(0) S(0)");
  CHECK(row("transformer.wte", "output", "") == "0 S(0) S(0) P");
  // Sequence parallelism: norms by tokens, with whole weights.
  CHECK(row("transformer.h.0.ln_1", "input", "") == "0 S(0) S(0) S(0)");
  CHECK(row("transformer.h.0.ln_1", "gradient", "transformer.h.0.ln_1/weight") == "0 B S(0) B");
  // Columns, then rows; matrices are [out, in].
  CHECK(row("transformer.h.0.mlp.c_fc", "input", "") == "0 S(0) S(0) B");
  CHECK(row("transformer.h.0.mlp.c_fc", "weight", "transformer.h.0.mlp.c_fc/weight") == "0 B S(0) S(0)");
  CHECK(row("transformer.h.0.mlp.c_proj", "weight", "transformer.h.0.mlp.c_proj/weight") == "0 B S(0) S(1)");
  CHECK(row("transformer.h.0.mlp.c_proj", "weight", "transformer.h.0.mlp.c_proj/bias") == "0 B S(0) B");
  CHECK(row("transformer.h.0.mlp.c_proj", "output", "") == "0 S(0) S(0) P");
  // Blocks 6 to 11 are on the second stage, with its copy of the tied table.
  CHECK(row("transformer.h.5.ln_1", "input", "") == "0 S(0) S(0) S(0)");
  CHECK(row("transformer.h.6.ln_1", "input", "") == "1 S(0) S(0) S(0)");
  CHECK(row("lm_head", "weight", "transformer.wte/weight") == "1 B S(0) S(0)");
  // Each layer once: an input and an output row.
  std::size_t inputs = 0;
  for (std::size_t i = 0; i < table.size(); ++i) inputs += table.cell(i, "tensor") == "input" ? 1U : 0U;
  CHECK(inputs == plan.model.layer_count());
}

TEST_CASE("signatures of plain data parallelism", "[export]") {
  // Stage 1 keeps whole parameters and gives each rank a share of the gradient; ddp keeps both whole.
  const Case shared("fsdp", 8, 16, {{"stage", "1"}});
  CHECK_THAT(signature_table(shared.strategy, shared.model),
             ContainsSubstring("0,0,transformer.ln_f,norm,weight,transformer.ln_f/weight,,B,\n"
                               "0,0,transformer.ln_f,norm,gradient,transformer.ln_f/weight,,S(0),\n"));
  const Case ddp("ddp", 8, 16, {});
  CHECK_THAT(signature_table(ddp.strategy, ddp.model),
             ContainsSubstring("0,0,transformer.ln_f,norm,weight,transformer.ln_f/weight,,B,\n"
                               "0,0,transformer.ln_f,norm,gradient,transformer.ln_f/weight,,B,\n"));
  const Case ps("ps", 8, 16, {});
  CHECK_THROWS_WITH(
      signature_table(ps.strategy, ps.model),
      "strategy 'ps' has no table of signatures: variable 'transformer.wte/weight' is neither all-reduced "
      "nor sharded among ranks");
}
