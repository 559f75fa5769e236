// Flags of Megatron-LM: megatron/training/arguments.py and the configuration classes that it reads, core_v0.19.0.
#include <fmt/format.h>

#include <algorithm>

#include "models/precision.hpp"
#include "strategies/export/common.hpp"
#include "strategies/stage_model.hpp"

namespace simsync::detail {
namespace {

class Megatron {
public:
  explicit Megatron(const ExportQuestion& question)
      : question_(question), plan_(question), out_(begin_settings(question)) {}

  FrameworkSettings settings() {
    expect_transformer(question_.model, out_);
    mesh();
    environment();
    pipeline();
    batch();
    data_parallel();
    recompute();
    precision();
    optimizer();
    return std::move(out_);
  }

private:
  void flag(const std::string& name, SettingValue value = true) {
    out_.settings.push_back({"", name, std::move(value)});
  }

  void mesh() {
    flag("tensor-model-parallel-size", std::int64_t{plan_.parallel.tensor});
    flag("pipeline-model-parallel-size", std::int64_t{plan_.parallel.pipeline});
    if (plan_.parallel.sequence && plan_.parallel.tensor > 1) flag("sequence-parallel");
    if (plan_.parallel.context > 1) context();
    note_padded_vocabulary(question_.model, plan_.parallel.tensor, out_);
    if (experts_of(question_.model) == 0) return;
    flag("expert-model-parallel-size", std::int64_t{plan_.parallel.experts});
    flag("moe-token-dispatcher-type", std::string("alltoall"));
    expect_sequence_with_experts(question_.model, plan_.parallel, out_);
  }

  /// By default it sends keys and values round a ring while attention computes.
  void context() {
    flag("context-parallel-size", std::int64_t{plan_.parallel.context});
    expect_balanced_context(plan_.parallel, out_);
    if (!plan_.parallel.context_overlap) flag("cp-comm-type", std::string("all_gather"));
  }

  /// validate_args asserts it.
  void environment() {
    const bool fsdp = plan_.shares_state() && plan_.stage > 1;
    note_if(fsdp, "CUDA_DEVICE_MAX_CONNECTIONS must not be 1 in the environment", out_);
    note_if(!fsdp && (plan_.parallel.tensor > 1 || plan_.parallel.context > 1),
            "CUDA_DEVICE_MAX_CONNECTIONS must be 1 in the environment of devices before Blackwell", out_);
  }

  void pipeline() {
    const PipelineSchedule schedule = plan_.parallel.schedule;
    if (plan_.parallel.pipeline == 1) return;
    if (schedule == PipelineSchedule::GPipe || schedule == PipelineSchedule::ZeroBubble)
      return refuse_if(true, fmt::format("it has the schedules 1f1b and interleaved, not {}", name_of(schedule)), out_);
    const int chunks = plan_.model_chunks();
    if (plan_.blocks % chunks != 0 || plan_.parallel.blocks != StageBlocks::Even) {
      flag("pipeline-model-parallel-layout", layout());
    } else if (plan_.parallel.chunks > 1) {
      flag("num-layers-per-virtual-pipeline-stage", std::int64_t{plan_.blocks / chunks});
    }
  }

  /// `Et*3|t*2L`: embedding, blocks and loss by model chunk (PipelineParallelLayerLayout).
  [[nodiscard]] std::string layout() const {
    std::string text = "E";
    const BlockCounts counts = blocks_by_chunk(question_.model, plan_.parallel);
    for (std::size_t chunk = 0; chunk < counts.size(); ++chunk) {
      if (chunk > 0) text += '|';
      if (counts[chunk] > 0) text += fmt::format("t*{}", counts[chunk]);
    }
    return text + "L";
  }

  void batch() {
    flag("micro-batch-size", plan_.micro_batch);
    flag("global-batch-size", plan_.global_batch);
  }

  /// With one replica, or in shard groups of one, nothing is shared out.
  void data_parallel() {
    if (plan_.replicas == 1) return;
    if (plan_.shares_state()) return sharding();
    if (plan_.overlaps) flag("overlap-grad-reduce");
    buckets();
  }

  /// It counts buckets in parameters, and reduces all gradients at once where they do not overlap.
  void buckets() {
    const Fusion& fusion = question_.strategy.graph.fusion;
    if (!plan_.overlaps) return;
    if (!plan_.sharded && fusion.kind == FusionKind::Buckets)
      flag("ddp-bucket-size", fusion.limit.count / plan_.gradient_bytes);
    else
      note_if(true,
              "it fuses gradients into buckets of max(40,000,000, 1,000,000 x replicas) parameters: --ddp-bucket-size",
              out_);
    note_if(plan_.parallel.pipeline > 1, "stages after the first reduce all gradients in one bucket", out_);
  }

  void sharding() {
    const Sharding& sharding = question_.strategy.graph.sharding;
    refuse_if(sharding.whole_variables, "its distributed optimizer shares out every variable, none as a whole", out_);
    flag("use-distributed-optimizer");
    if (plan_.stage > 1) {
      flag("use-megatron-fsdp");
      flag("data-parallel-sharding-strategy", std::string(plan_.stage == 2 ? "optim_grads" : "optim_grads_params"));
      flag("ckpt-format", std::string("fsdp_dtensor"));
      refuse_if(plan_.micro_steps > 1 && !sharding.reduces_early(),
                "Megatron-FSDP reduces gradients in every micro-step", out_);
      refuse_if(plan_.stage == 3 && !sharding.reshard_after_forward,
                "Megatron-FSDP frees the parameters of a block after its forward pass", out_);
    }
    refuse_if(
        plan_.group < plan_.replicas && plan_.group % plan_.parallel.experts != 0,
        fmt::format("its distributed optimizer shares out in groups of whole expert-parallel ranks, and {} do not "
                    "divide groups of {}",
                    plan_.parallel.experts, plan_.group),
        out_);
    if (plan_.group < plan_.replicas)
      flag("num-distributed-optimizer-instances", std::int64_t{plan_.replicas / plan_.group});
    if (plan_.overlaps) flag("overlap-grad-reduce");
    if (plan_.overlaps && (plan_.stage == 3 || sharding.overlap_gather)) flag("overlap-param-gather");
    if (plan_.stage == 1) buckets();
  }

  void recompute() {
    const auto set = [&](std::string name, SettingValue value) {
      std::replace(name.begin(), name.end(), '_', '-');
      flag("recompute-" + name, std::move(value));
    };
    set_core_recompute(question_.strategy.graph.recompute, set, out_);
  }

  /// Gradients of bf16 weights add up and travel in 32 bits unless it is told otherwise, those of fp16 in 16.
  void precision() {
    constexpr std::int64_t kSingle = 4;
    const std::string& precision = question_.precision;
    const bool half = has_half_weights(precision);
    if (precision == "tf32" || precision == "amp")
      return refuse_if(true, fmt::format("it is told fp32, fp16, bf16 or fp8, not {}", precision), out_);
    if (precision == "fp16") flag("fp16");
    if (precision == "bf16" || precision == "fp8") flag("bf16");
    if (precision == "fp8") flag("fp8-format", std::string("hybrid"));
    if (plan_.gradient_bytes == kSingle && precision == "fp16") flag("accumulate-allreduce-grads-in-fp32");
    if (plan_.gradient_bytes != kSingle && (precision == "bf16" || precision == "fp8")) flag("grad-reduce-in-bf16");
    refuse_if(!half && plan_.gradient_bytes != kSingle, "it reduces gradients of fp32 weights in fp32", out_);
    refuse_if(plan_.sharded && plan_.parameter_bytes != (half ? kSingle / 2 : kSingle),
              "it gathers parameters in the precision that it computes in", out_);
    note_if(half && !question_.optimizer.master_weights,
            "it keeps fp32 copies of the weights, which master_weights=true predicts", out_);
  }

  void optimizer() {
    const Optimizer chosen = question_.optimizer.optimizer;
    flag("optimizer", std::string(chosen == Optimizer::Adam ? "adam" : "sgd"));
    if (chosen == Optimizer::Sgd) flag("sgd-momentum", std::int64_t{0});
  }

  const ExportQuestion& question_;
  PlanNumbers plan_;
  FrameworkSettings out_;
};

}  // namespace

FrameworkSettings megatron_settings(const ExportQuestion& question) {
  return Megatron(question).settings();
}

}  // namespace simsync::detail
