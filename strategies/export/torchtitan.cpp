// Keys of torchtitan's toml files: torchtitan/config/job_config.py, release 0.2.2 (later ones are configured in
// Python). What it does with them: torchtitan/train.py, distributed/pipeline_parallel.py,
// models/llama3/infra/parallelize.py, and torch/distributed/pipelining/stage.py of PyTorch.
#include <fmt/format.h>

#include "models/precision.hpp"
#include "strategies/export/common.hpp"
#include "strategies/split_layers.hpp"

namespace simsync::detail {
namespace {

class Torchtitan {
public:
  explicit Torchtitan(const ExportQuestion& question)
      : question_(question), plan_(question), out_(begin_settings(question)) {}

  FrameworkSettings settings() {
    expect_transformer(question_.model, out_);
    training();
    data_parallel();
    tensor_parallel();
    pipeline();
    recompute();
    note_if(question_.optimizer.optimizer != Optimizer::Adam,
            fmt::format("its optimizers are Adam and AdamW, and the prediction is of {}",
                        name_of(question_.optimizer.optimizer)),
            out_);
    return std::move(out_);
  }

private:
  void parallelism(const std::string& name, SettingValue value) {
    out_.settings.push_back({"parallelism", name, std::move(value)});
  }

  /// A rank's batch is that of a micro-step, which it accumulates up to the global one; of a pipeline that of a step.
  void training() {
    const auto set = [&](const char* name, SettingValue value) {
      out_.settings.push_back({"training", name, std::move(value)});
    };
    const bool piped = plan_.parallel.pipeline > 1;
    set("local_batch_size", piped ? question_.batch : plan_.micro_batch);
    set("global_batch_size", plan_.global_batch);
    const std::string& precision = question_.precision;
    if (precision != "fp32" && precision != "amp" && precision != "bf16")
      return refuse_if(true, fmt::format("it is told fp32, amp or bf16, not {}", precision), out_);
    set("dtype", std::string(precision == "bf16" ? "bfloat16" : "float32"));
    set("mixed_precision_param", std::string(precision == "fp32" ? "float32" : "bfloat16"));
    refuse_if(precision == "bf16" && question_.optimizer.master_weights,
              "with weights in bf16 it keeps no fp32 copies (precision=amp has weights in fp32)", out_);
    refuse_if(!plan_.shares_state() && plan_.replicas > 1 && precision == "bf16" &&
                  plan_.gradient_bytes == size_of(DType::Float32),
              "its DDP reduces gradients of weights in bf16 in bf16, the plan in fp32", out_);
  }

  void data_parallel() {
    const int groups = plan_.shares_state() ? plan_.replicas / plan_.group : plan_.replicas;
    const int context = plan_.parallel.context;
    parallelism("data_parallel_replicate_degree", std::int64_t{groups});
    // It shares out state among the context-parallel ranks, too.
    parallelism("data_parallel_shard_degree", std::int64_t{plan_.shares_state() ? plan_.group / context : 1});
    if (context > 1) parallelism("context_parallel_degree", std::int64_t{context});
    expect_balanced_context(plan_.parallel, out_);
    note_if(context > 1 && !plan_.parallel.context_overlap,
            "it gathers keys and values while attention computes with a rank's own (context_overlap=true)", out_);
    refuse_if(plan_.shares_state() && plan_.group % context != 0,
              "it shares out state among whole groups of context-parallel ranks", out_);
    if (plan_.shares_state()) return fsdp();
    if (plan_.replicas == 1) return;
    refuse_if(!plan_.parallel.is_trivial(), "its DDP goes with no tensor, pipeline or context parallelism", out_);
    refuse_if(plan_.micro_steps > 1, "its DDP reduces gradients in every micro-step", out_);
    note_if(question_.strategy.graph.fusion.limit.count != kBucket,
            "it fuses gradients into buckets of 100 MiB (bucket_cap_mb in its code)", out_);
  }

  void fsdp() {
    const Sharding& sharding = question_.strategy.graph.sharding;
    const bool frees = plan_.stage == 3 && sharding.reshard_after_forward;
    const bool piped = plan_.parallel.pipeline > 1;
    parallelism("fsdp_reshard_after_forward", std::string(frees ? "always" : "never"));
    refuse_if(plan_.stage == 1, "it shares out gradients, too: ZeRO stage 2 or 3", out_);
    refuse_if(plan_.stage == 2 && plan_.micro_steps > 1 && !piped,
              "it gathers parameters in every micro-step, ZeRO stage 2 once a step", out_);
    if (plan_.micro_steps > 1)
      refuse_if(piped == sharding.reduces_early(),
                piped ? "with a pipeline it reduces gradients once a step (reduce_every_micro_step=false)"
                      : "without a pipeline it reduces gradients in every micro-step",
                out_);
    note_if(piped && plan_.stage == 3 && plan_.micro_steps > 1,
            "with a pipeline it keeps gathered parameters between backward passes, the plan gathers them again", out_);
    refuse_if(plan_.gradient_bytes != size_of(DType::Float32), "it reduces gradients in fp32 (reduce_dtype=float32)",
              out_);
    refuse_if(
        plan_.parameter_bytes != (question_.precision == "fp32" ? size_of(DType::Float32) : size_of(DType::BFloat16)),
        "it gathers parameters in the precision that it computes in", out_);
    note_if(sharding.min_unit.count > 0, "it gathers every block by itself (min_unit=0B)", out_);
  }

  void tensor_parallel() {
    parallelism("tensor_parallel_degree", std::int64_t{plan_.parallel.tensor});
    refuse_if(plan_.parallel.tensor > 1 && !plan_.parallel.sequence,
              "its tensor parallelism is sequence-parallel, too (sequence=true)", out_);
    refuse_if(experts_of(question_.model) > 0, "its Llama 3, which these keys are of, has no experts", out_);
  }

  /// Blocks are spread as the plan has them once an embedding and a head count as no block.
  void pipeline() {
    const ModelParallel& parallel = plan_.parallel;
    parallelism("pipeline_parallel_degree", std::int64_t{parallel.pipeline});
    if (parallel.pipeline == 1) return;
    refuse_if(parallel.schedule == PipelineSchedule::ZeroBubble,
              "its zero-bubble schedules (InterleavedZeroBubble, ZBVZeroBubble) have two or more model chunks on a "
              "stage, the plan's has one",
              out_);
    const char* word = parallel.schedule == PipelineSchedule::GPipe         ? "GPipe"
                       : parallel.schedule == PipelineSchedule::Interleaved ? "Interleaved1F1B"
                                                                            : "1F1B";
    parallelism("pipeline_parallel_schedule", std::string(word));
    parallelism("pipeline_parallel_microbatch_size", plan_.micro_batch);
    refuse_if(parallel.blocks != StageBlocks::Even && parallel.blocks != StageBlocks::WithEnds,
              "it deals blocks to stages by their number, not by what they compute", out_);
    const int of_ends = parallel.blocks == StageBlocks::WithEnds ? 1 : 0;
    parallelism("pipeline_parallel_first_stage_less_layers", std::int64_t{of_ends});
    parallelism("pipeline_parallel_last_stage_less_layers", std::int64_t{of_ends});
    constexpr int kDefaultChunks = 2;
    if (parallel.chunks <= kDefaultChunks) return;
    const int blocks = plan_.blocks + 2 * of_ends;
    const int layers = (blocks + plan_.model_chunks() - 1) / plan_.model_chunks();
    parallelism("pipeline_parallel_layers_per_stage", std::int64_t{layers});
    refuse_if(layers == 0 || (blocks + layers - 1) / layers != plan_.model_chunks(),
              fmt::format("it takes blocks per model chunk, and {} a chunk do not make {} chunks of {} blocks", layers,
                          plan_.model_chunks(), blocks),
              out_);
  }

  void recompute() {
    const auto set = [&](const char* name, const char* value) {
      out_.settings.push_back({"activation_checkpoint", name, std::string(value)});
    };
    switch (question_.strategy.graph.recompute) {
      case Recompute::None:
        return set("mode", "none");
      case Recompute::Selective:
        return refuse_if(true, "it recomputes every second product, too (recompute=selective-op)", out_);
      case Recompute::SelectiveOp:
        set("mode", "selective");
        return set("selective_ac_option", "op");
      case Recompute::Full:
        return set("mode", "full");
    }
  }

  static constexpr std::int64_t kBucket = 100 << 20;
  const ExportQuestion& question_;
  PlanNumbers plan_;
  FrameworkSettings out_;
};

}  // namespace

FrameworkSettings torchtitan_settings(const ExportQuestion& question) {
  return Torchtitan(question).settings();
}

}  // namespace simsync::detail
