// How several ranks compute one replica of a model together: tensor and pipeline parallelism.
#pragma once
#include <vector>

#include "strategies/layer_split.hpp"
#include "strategies/pipeline/pipeline_schedule.hpp"

namespace simsync {

/// Ranks are numbered with the tensor-parallel ones next to each other, then replicas, then stages, as Megatron-LM and
/// nanotron number them: the groups that talk most are inside nodes. With one rank of each it is data parallelism.
struct ModelParallel {
  int tensor = 1;    ///< ranks that split every layer (Shoeybi et al., "Megatron-LM", 2019)
  int pipeline = 1;  ///< stages, each a run of layers, or several where the schedule is interleaved
  PipelineSchedule schedule = PipelineSchedule::OneForwardOneBackward;
  int chunks = 1;  ///< runs of layers on a stage
  /// What is before the first block and what is after the last count as a block each where blocks are dealt to chunks
  /// (Megatron-LM's account_for_embedding_in_pipeline_split and account_for_loss_in_pipeline_split; Llama 3).
  bool count_ends = false;
  /// What no layer splits is shared out by tokens among the tensor-parallel ranks (sequence parallelism, Korthikanti et
  /// al., "Reducing Activation Recomputation in Large Transformer Models", 2022).
  bool sequence = false;
  /// Layers that tensor-parallel ranks share out otherwise than by the rule (splits_of); the first that matches counts.
  std::vector<SplitChoice> splits = {};
  friend bool operator==(const ModelParallel&, const ModelParallel&) = default;

  /// Of one replica.
  [[nodiscard]] int ranks() const { return tensor * pipeline; }
  /// The pipeline of a step of so many micro-steps.
  [[nodiscard]] PipelineShape shape(int micro_steps) const {
    return {.schedule = schedule, .stages = pipeline, .micro_batches = micro_steps, .chunks = chunks};
  }
  /// Whether a replica is one rank.
  [[nodiscard]] bool is_trivial() const { return ranks() == 1; }
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
      : tensor_(parallel.tensor), stages_(parallel.pipeline), replicas_(workers / parallel.ranks()) {}

  [[nodiscard]] int tensor() const { return tensor_; }
  [[nodiscard]] int stages() const { return stages_; }
  [[nodiscard]] int replicas() const { return replicas_; }
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
};

}  // namespace simsync
