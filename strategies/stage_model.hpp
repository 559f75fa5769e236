// What one rank of each pipeline stage computes: a model of its own.
#pragma once
#include <optional>
#include <vector>

#include "models/model.hpp"
#include "strategies/layer_boxing.hpp"
#include "strategies/model_parallel.hpp"
#include "strategies/pipeline/stage_blocks.hpp"
#include "strategies/strategy.hpp"

namespace simsync {

/// Layers of one chunk of a stage, in the stage's model: from `begin` to before `end`.
struct StageChunk {
  LayerId begin = 0;
  LayerId end = 0;
  /// Of what the chunk gets from the one before it: bytes that a rank receives per sample, in 32-bit elements; 0 for
  /// the first. As much of gradients goes back.
  double received_bytes = 0.0;
};

/// Which ranks of a stage have gradients of a variable that add up.
enum class GradientSum : std::uint8_t {
  Replicas,  ///< that have the same place among tensor-parallel ranks
  Stage,     ///< all: tensor-parallel ranks have the same of it, each with the gradient of its own tokens
  Experts,   ///< of the replicas those that have the same experts
};

/// One rank's part of the layers of a stage.
struct StageModel {
  Model model;
  std::vector<StageChunk> chunks;
  /// By layer of `model`: that of the whole model. None: what a chunk receives, which takes memory and no time.
  std::vector<std::optional<LayerId>> layer_of;
  /// By variable of `model`: that of the whole model. A table that another stage owns and this one multiplies with (a
  /// tied output layer) is a copy of it.
  std::vector<VariableId> variable_of;
  std::vector<GradientSum> gradient_sum;  ///< by variable of `model`
  LayerBoxings boxing;                    ///< by layer of `model`
  std::optional<VariableId> shared_copy;  ///< in `model`: such a copy, or the table that another stage has a copy of
};

/// How many blocks each chunk of the whole pipeline has, as ModelParallel::blocks says. @throws PlanError where they
/// cannot be shared out so.
BlockCounts blocks_by_chunk(const Model& model, const ModelParallel& parallel);

/// By stage. Blocks (blocks_of) are never cut; what is before the first block belongs to the first chunk, what is after
/// the last to the last. The model itself where the strategy is trivial. Expert-parallel ranks have equal numbers of
/// experts, of which a rank's model names the first. @throws PlanError as blocks_by_chunk, for tokens
/// that context-parallel ranks cannot share out (obstacle_to_context), for layers that cannot be split and for experts
/// that do not divide evenly.
std::vector<StageModel> stage_models(const Model& model, const ModelParallel& parallel);

/// The whole model's strategy, of the variables that a stage has. They are not cut.
Strategy stage_strategy(const Strategy& whole, const StageModel& part);

}  // namespace simsync
