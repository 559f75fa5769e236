// Private to this folder: what of a plan all frameworks are told, and what none of them can do.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "strategies/export/framework.hpp"

namespace simsync::detail {

/// The numbers of a plan that frameworks ask for.
struct PlanNumbers {
  explicit PlanNumbers(const ExportQuestion& question);

  const ModelParallel& parallel;
  int replicas = 1;
  int micro_steps = 1;
  std::int64_t micro_batch = 1;      ///< samples of a replica in a micro-step
  std::int64_t global_batch = 1;     ///< samples of all replicas in a step
  int blocks = 0;                    ///< of the model
  bool sharded = false;              ///< else gradients are all-reduced
  int stage = 0;                     ///< of ZeRO; 0: all-reduced
  int group = 1;                     ///< replicas that share one copy
  bool overlaps = true;              ///< gradients leave while backward runs
  std::int64_t gradient_bytes = 4;   ///< of an element as ranks exchange it
  std::int64_t parameter_bytes = 4;  ///< of an element as sharded parameters are gathered

  /// Whether ranks share out state; in groups of one they do not.
  [[nodiscard]] bool shares_state() const { return sharded && replicas > 1 && group > 1; }
  [[nodiscard]] int model_chunks() const { return parallel.pipeline * parallel.chunks; }
};

/// With what none of the frameworks can do, and notes on algorithms of collectives.
FrameworkSettings begin_settings(const ExportQuestion& question);
/// Refuses a model without blocks of attention, for frameworks that train transformers.
void expect_transformer(const Model& model, FrameworkSettings& out);
/// Refuses context-parallel ranks with one run of tokens each.
void expect_balanced_context(const ModelParallel& parallel, FrameworkSettings& out);
/// Notes what Megatron-Core makes of a vocabulary that 128 x the tensor-parallel ranks do not divide.
void note_padded_vocabulary(const Model& model, int tensor, FrameworkSettings& out);
/// Refuses tensor parallelism of experts without sequence parallelism: Megatron-Core has none.
void expect_sequence_with_experts(const Model& model, const ModelParallel& parallel, FrameworkSettings& out);
/// What Megatron-Core, which NeMo runs on, is told to recompute: `set` gets `granularity`, `method`, `num_layers`.
void set_core_recompute(Recompute recompute, const std::function<void(const std::string&, SettingValue)>& set,
                        FrameworkSettings& out);
/// Refuses `what` where `condition` holds.
void refuse_if(bool condition, const std::string& what, FrameworkSettings& out);
void note_if(bool condition, const std::string& what, FrameworkSettings& out);

FrameworkSettings megatron_settings(const ExportQuestion& question);
FrameworkSettings nemo_settings(const ExportQuestion& question);
FrameworkSettings torchtitan_settings(const ExportQuestion& question);
FrameworkSettings deepspeed_settings(const ExportQuestion& question);

}  // namespace simsync::detail
