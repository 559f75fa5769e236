// Keys of DeepSpeed's json file, release 0.19.6: deepspeed/runtime/constants.py, zero/config.py, config.py. What it
// does with them: deepspeed/runtime/engine.py, pipe/engine.py, module_inject/auto_tp.py.
#include <fmt/format.h>

#include "models/precision.hpp"
#include "strategies/export/common.hpp"

namespace simsync::detail {
namespace {

class DeepSpeed {
public:
  explicit DeepSpeed(const ExportQuestion& question)
      : question_(question), plan_(question), out_(begin_settings(question)) {}

  FrameworkSettings settings() {
    refuse_if(plan_.parallel.tensor > 1,
              "its tensor parallelism (tensor_parallel.autotp_size) splits no table by its rows, as the plan does",
              out_);
    refuse_if(plan_.parallel.experts > 1,
              "expert parallelism is an argument of its MoE layers (ep_size) in the program, not of its file", out_);
    refuse_if(plan_.parallel.context > 1,
              "its sequence parallelism (Ulysses) exchanges heads for tokens, not keys and values", out_);
    refuse_if(plan_.parallel.pipeline > 1,
              "pipeline stages are an argument of PipelineModule in the program, not of its file", out_);
    top("train_batch_size", plan_.global_batch);
    top("train_micro_batch_size_per_gpu", plan_.micro_batch);
    top("gradient_accumulation_steps", std::int64_t{plan_.micro_steps});
    precision();
    zero();
    note_if(question_.strategy.graph.recompute != Recompute::None,
            "which layers are recomputed is said in the program (deepspeed.checkpointing.checkpoint)", out_);
    return std::move(out_);
  }

private:
  void top(const std::string& name, SettingValue value) { out_.settings.push_back({"", name, std::move(value)}); }
  void in(const char* section, const char* name, SettingValue value) {
    out_.settings.push_back({section, name, std::move(value)});
  }

  void precision() {
    const std::string& precision = question_.precision;
    const bool half = has_half_weights(precision);
    const bool single = plan_.gradient_bytes == size_of(DType::Float32);
    if (precision == "fp8" || precision == "tf32" || precision == "amp")
      return refuse_if(true, fmt::format("it is told fp32, fp16 or bf16 here, not {}", precision), out_);
    refuse_if(!half && !single, "it reduces gradients of fp32 weights in fp32", out_);
    refuse_if(plan_.sharded && plan_.parameter_bytes != size_of(half ? DType::Float16 : DType::Float32),
              "it gathers parameters in the precision that it computes in", out_);
    if (!half) return;
    top("communication_data_type", single ? "fp32" : precision);
    in(precision.c_str(), "enabled", true);
    note_if(!question_.optimizer.master_weights,
            "it keeps fp32 copies of the weights, which master_weights=true predicts", out_);
  }

  void zero() {
    const char* section = "zero_optimization";
    const bool shares = plan_.shares_state();
    in(section, "stage", std::int64_t{shares ? plan_.stage : 0});
    if (!shares)
      return note_if(plan_.overlaps && plan_.replicas > 1,
                     "without ZeRO it reduces gradients after the backward pass, the plan beside it", out_);
    in(section, "overlap_comm", plan_.overlaps);
    const Sharding& sharding = question_.strategy.graph.sharding;
    refuse_if(sharding.whole_variables, "it shares out every variable, none as a whole", out_);
    refuse_if(plan_.micro_steps > 1 && plan_.stage > 1 && !sharding.reduces_early(),
              "from ZeRO stage 2 on it reduces gradients in every micro-step", out_);
    refuse_if(plan_.stage == 3 && !sharding.reshard_after_forward,
              "it frees the parameters of a block after its forward pass", out_);
    note_if(plan_.stage < 3 && sharding.overlap_gather,
            "it gathers all parameters before the step, the plan beside its forward pass (overlap_gather=false)", out_);
    note_if(plan_.stage == 3, "it prefetches by elements (stage3_prefetch_bucket_size), the plan by blocks", out_);
    groups();
  }

  /// Groups of ranks that hold one copy (Zhang et al., "MiCS", VLDB 2022).
  void groups() {
    if (plan_.group == plan_.replicas) return;
    refuse_if(plan_.stage < 3, "it shares out in groups of ranks at ZeRO stage 3 only (MiCS)", out_);
    in("zero_optimization", "mics_shard_size", std::int64_t{plan_.group});
    note_if(true, "the program has to create the model inside of deepspeed.zero.MiCS_Init", out_);
  }

  const ExportQuestion& question_;
  PlanNumbers plan_;
  FrameworkSettings out_;
};

}  // namespace

FrameworkSettings deepspeed_settings(const ExportQuestion& question) {
  return DeepSpeed(question).settings();
}

}  // namespace simsync::detail
