// How several ranks compute one replica of a model together: tensor and pipeline parallelism.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "strategies/layer_split.hpp"
#include "strategies/pipeline/pipeline_schedule.hpp"

namespace simsync {

/// Which blocks (blocks_of) each stage has.
enum class StageBlocks : std::uint8_t {
  Even,  ///< each chunk as many as any other, the first ones one more where they do not divide evenly
  /// The same where what is before the first block and what is after the last count as one each (Megatron-LM's
  /// account_for_embedding_in_pipeline_split and account_for_loss_in_pipeline_split; Llama 3).
  WithEnds,
  Threshold,  ///< by the operations of their matrix products, the head's among them (threshold_blocks: nanotron)
  Balanced,   ///< so that the dearest chunk is the cheapest, by the same operations (balanced_blocks)
};

/// What the process of a rank does on the host for its device. A host launches kernels in order and as far ahead of the
/// device as it gets; a device cannot begin what has not been launched.
struct HostCosts {
  Seconds launch{0};  ///< of one pass of one layer
  /// Before a collective of ranks that share out layers, experts or tokens their hosts make sure that all call the
  /// same: for each of the ranks (TORCH_DISTRIBUTED_DEBUG=DETAIL, whose barrier over Gloo answers one rank after the
  /// other).
  Seconds check{0};
  /// Of what announces a transfer between stages (shapes, before the data), where hosts wait for their devices and for
  /// each other: the sender announces what its device has ended, and the receiver launches nothing before it has
  /// arrived. 0: transfers are launched ahead as all else.
  Seconds transfer{0};
  /// At the end of a step a host waits for its device before it launches anything of the next: it reads the loss, or
  /// whether gradients overflowed (Megatron-LM's and DeepSpeed's fp16).
  bool waits = false;
  [[nodiscard]] bool any() const { return launch.value() > 0.0 || check.value() > 0.0 || transfer.value() > 0.0; }
  friend bool operator==(const HostCosts&, const HostCosts&) = default;
};

/// Ranks are numbered with the tensor-parallel ones next to each other, then replicas, then stages, as Megatron-LM and
/// nanotron number them: the groups that talk most are inside nodes. With one rank of each it is data parallelism.
struct ModelParallel {
  int tensor = 1;    ///< ranks that split every layer (Shoeybi et al., "Megatron-LM", 2019)
  int pipeline = 1;  ///< stages, each a run of layers, or several where the schedule is interleaved
  /// Replicas next to each other that share out the experts of a mixture of experts: each has all else, and sends rows
  /// to the experts of the others (expert parallelism, Lepikhin et al., "GShard", 2020). They divide the replicas.
  int experts = 1;
  /// Replicas next to each other that compute the same samples, each an equal share of their tokens (context
  /// parallelism). Each has all parameters, and gathers keys and values of all tokens before attention (Llama Team,
  /// "The Llama 3 Herd of Models", 2024, section 3.3.2). They divide the replicas.
  int context = 1;
  PipelineSchedule schedule = PipelineSchedule::OneForwardOneBackward;
  int chunks = 1;  ///< runs of layers on a stage
  /// What no layer splits is shared out by tokens among the tensor-parallel ranks (sequence parallelism, Korthikanti et
  /// al., "Reducing Activation Recomputation in Large Transformer Models", 2022).
  bool sequence = false;
  /// With `sequence`: all-gathers run beside the product that reads their result, reduce-scatters beside the product
  /// that gives what they reduce, as where both are cut into pieces (Transformer Engine's userbuffers, PyTorch's
  /// asynchronous tensor parallelism). The longer of the two counts; the first piece, which nothing hides, is left out.
  bool tensor_overlap = false;
  /// Each context-parallel rank has a run of tokens from the front of a sample and one from the back, so that all have
  /// as much of a causal attention to compute. false: one run each, and the others wait for the rank with the last one.
  bool context_balanced = true;
  /// What context-parallel ranks exchange runs beside the attention that needs it, as keys and values that go round a
  /// ring do (Liu et al., "Ring Attention", 2023). The longer of the two counts.
  bool context_overlap = false;
  /// Layers that tensor-parallel ranks share out otherwise than by the rule (splits_of); the first that matches counts.
  std::vector<SplitChoice> splits = {};
  StageBlocks blocks = StageBlocks::Even;
  HostCosts host;
  friend bool operator==(const ModelParallel&, const ModelParallel&) = default;

  /// Of one replica.
  [[nodiscard]] int ranks() const { return tensor * pipeline; }
  /// The pipeline of a step of so many micro-steps.
  [[nodiscard]] PipelineShape shape(int micro_steps) const {
    return {.schedule = schedule, .stages = pipeline, .micro_batches = micro_steps, .chunks = chunks};
  }
  /// Whether every rank computes whole samples of the whole model.
  [[nodiscard]] bool is_trivial() const { return ranks() == 1 && experts == 1 && context == 1; }
};

/// Where a rank stands in the mesh.
struct MeshPlace {
  int tensor = 0;
  int replica = 0;
  int stage = 0;
};

/// The mesh of `workers` ranks; they are a multiple of ModelParallel::ranks().
class ModelMesh {
public:
  ModelMesh(const ModelParallel& parallel, int workers)
      : tensor_(parallel.tensor),
        stages_(parallel.pipeline),
        replicas_(workers / parallel.ranks()),
        experts_(parallel.experts),
        context_(parallel.context) {}

  [[nodiscard]] int tensor() const { return tensor_; }
  [[nodiscard]] int stages() const { return stages_; }
  [[nodiscard]] int replicas() const { return replicas_; }
  [[nodiscard]] int experts() const { return experts_; }  ///< expert-parallel ranks
  [[nodiscard]] int context() const { return context_; }  ///< context-parallel ranks
  [[nodiscard]] int ranks() const { return tensor_ * replicas_ * stages_; }
  [[nodiscard]] int rank_at(const MeshPlace& place) const {
    return (place.stage * replicas_ + place.replica) * tensor_ + place.tensor;
  }
  [[nodiscard]] MeshPlace place_of(int rank) const {
    return {.tensor = rank % tensor_, .replica = rank / tensor_ % replicas_, .stage = rank / tensor_ / replicas_};
  }

private:
  int tensor_;
  int stages_;
  int replicas_;
  int experts_;
  int context_;
};

}  // namespace simsync
