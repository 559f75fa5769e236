// Keys of NeMo's examples/nlp/language_modeling/conf/megatron_gpt_config.yaml, release 2.0.0. What it checks:
// nemo/collections/nlp/parts/nlp_overrides.py, models/language_modeling/megatron_base_model.py and
// megatron_gpt_model.py.
#include <fmt/format.h>

#include "models/precision.hpp"
#include "strategies/export/common.hpp"

namespace simsync::detail {
namespace {

class NeMo {
public:
  explicit NeMo(const ExportQuestion& question)
      : question_(question), plan_(question), out_(begin_settings(question)) {}

  FrameworkSettings settings() {
    expect_transformer(question_.model, out_);
    precision();
    mesh();
    recompute();
    if (is_fsdp()) fsdp();
    optimizer(plan_.shares_state() && plan_.stage == 1);
    return std::move(out_);
  }

private:
  /// Which does not go with O2 (NLPFSDPStrategy).
  [[nodiscard]] bool is_fsdp() const { return plan_.shares_state() && plan_.stage > 1; }

  void model(const std::string& name, SettingValue value) {
    out_.settings.push_back({"model", name, std::move(value)});
  }
  void optim(const std::string& name, SettingValue value) {
    out_.settings.push_back({"model.optim", name, std::move(value)});
  }

  void precision() {
    constexpr std::int64_t kBits = 32;
    const std::string& precision = question_.precision;
    const bool half = has_half_weights(precision);
    if (precision == "tf32" || precision == "fp8")
      return refuse_if(true, fmt::format("it is told fp32, amp, fp16 or bf16 here, not {}", precision), out_);
    SettingValue word = precision == "fp32" ? SettingValue{kBits} : SettingValue{std::string("bf16")};
    if (precision == "fp16") word = kBits / 2;
    out_.settings.push_back({"trainer", "precision", std::move(word)});
    const bool o2 = half && !is_fsdp();
    model("megatron_amp_O2", o2);
    refuse_if(!o2 && plan_.parallel.experts > 1, "it takes expert parallelism with megatron_amp_O2 only", out_);
    refuse_if(!o2 && plan_.parallel.chunks > 1, "it takes interleaved stages with megatron_amp_O2 only", out_);
    note_if(half && !question_.optimizer.master_weights,
            "it keeps fp32 copies of the weights, which master_weights=true predicts", out_);
  }

  void mesh() {
    const ModelParallel& parallel = plan_.parallel;
    model("micro_batch_size", plan_.micro_batch);
    model("global_batch_size", plan_.global_batch);
    model("tensor_model_parallel_size", std::int64_t{parallel.tensor});
    model("pipeline_model_parallel_size", std::int64_t{parallel.pipeline});
    if (parallel.experts > 1) {
      model("expert_model_parallel_size", std::int64_t{parallel.experts});
      model("moe_token_dispatcher_type", std::string("alltoall"));
    }
    if (parallel.context > 1) model("context_parallel_size", std::int64_t{parallel.context});
    expect_balanced_context(parallel, out_);
    note_if(parallel.context > 1 && !parallel.context_overlap,
            "it sends keys and values round a ring while attention computes (context_overlap=true)", out_);
    note_padded_vocabulary(question_.model, parallel.tensor, out_);
    expect_sequence_with_experts(question_.model, parallel, out_);
    if (parallel.chunks > 1) model("virtual_pipeline_model_parallel_size", std::int64_t{parallel.chunks});
    model("sequence_parallel", parallel.sequence && parallel.tensor > 1);
    if (parallel.pipeline == 1) return;
    refuse_if(parallel.schedule == PipelineSchedule::GPipe || parallel.schedule == PipelineSchedule::ZeroBubble,
              fmt::format("it has the schedules 1f1b and interleaved, not {}", name_of(parallel.schedule)), out_);
    refuse_if(parallel.blocks != StageBlocks::Even, "its stages have as many blocks each", out_);
    refuse_if(
        plan_.blocks % plan_.model_chunks() != 0,
        fmt::format("its stages have as many blocks each, and {} do not share {}", plan_.model_chunks(), plan_.blocks),
        out_);
  }

  void recompute() {
    const auto set = [&](const std::string& name, SettingValue value) {
      model("activations_checkpoint_" + name, std::move(value));
    };
    set_core_recompute(question_.strategy.graph.recompute, set, out_);
  }

  void fsdp() {
    constexpr std::int64_t kBits = 32;
    const Sharding& sharding = question_.strategy.graph.sharding;
    model("fsdp", true);
    const bool keeps = plan_.stage == 2 || !sharding.reshard_after_forward;
    model("fsdp_sharding_strategy", std::string(keeps ? "grad" : "full"));
    SettingValue dtype = question_.precision == "fp16" ? SettingValue{kBits / 2} : SettingValue{std::string("bf16")};
    if (plan_.gradient_bytes == size_of(DType::Float32)) dtype = kBits;
    model("fsdp_grad_reduce_dtype", std::move(dtype));
    refuse_if(plan_.parallel.pipeline > 1, "its FSDP does not support pipeline parallelism", out_);
    refuse_if(plan_.group < plan_.replicas, "its FSDP does not support hybrid sharding (groups of ranks)", out_);
    refuse_if(plan_.micro_steps > 1 && plan_.stage == 2,
              "its FSDP gathers parameters in every micro-step, ZeRO stage 2 once a step", out_);
    refuse_if(plan_.micro_steps > 1 && !sharding.reduces_early(), "its FSDP reduces gradients in every micro-step",
              out_);
    refuse_if(
        plan_.parameter_bytes != (question_.precision == "fp32" ? size_of(DType::Float32) : size_of(DType::Float16)),
        "its FSDP gathers parameters in the precision that it computes in", out_);
  }

  /// Gradients of plain data parallelism travel in fp32, of fp16 weights in fp16 (its O2 recipe); those of the
  /// distributed optimizer as asked.
  void optimizer(bool distributed) {
    const Sharding& sharding = question_.strategy.graph.sharding;
    note_if(question_.optimizer.optimizer != Optimizer::Adam,
            fmt::format("its optimizers here are Adam, and the prediction is of {}",
                        name_of(question_.optimizer.optimizer)),
            out_);
    const bool single = plan_.gradient_bytes == size_of(DType::Float32);
    if (!distributed) {
      refuse_if(plan_.stage == 0 && plan_.replicas > 1 && single && question_.precision == "fp16",
                "it reduces gradients of fp16 weights in fp16", out_);
      refuse_if(plan_.stage == 0 && plan_.replicas > 1 && !single && question_.precision != "fp16",
                fmt::format("it reduces gradients of {} weights in fp32 (fp32_gradients=true)", question_.precision),
                out_);
      return optim("name", std::string("fused_adam"));
    }
    optim("name", std::string("mcore_distributed_optim"));
    optim("overlap_grad_sync", plan_.overlaps);
    optim("overlap_param_gather", plan_.overlaps && sharding.overlap_gather);
    optim("grad_sync_dtype", std::string(single ? "fp32" : "bf16"));
    refuse_if(sharding.whole_variables, "its distributed optimizer shares out every variable, none as a whole", out_);
    refuse_if(plan_.group < plan_.replicas, "its distributed optimizer shares out among all replicas, not in groups",
              out_);
    refuse_if(!single && question_.precision == "fp32", "it reduces gradients of fp32 weights in fp32", out_);
  }

  const ExportQuestion& question_;
  PlanNumbers plan_;
  FrameworkSettings out_;
};

}  // namespace

FrameworkSettings nemo_settings(const ExportQuestion& question) {
  return NeMo(question).settings();
}

}  // namespace simsync::detail
