// Which part of every layer a tensor-parallel rank computes, and what the ranks have to exchange for it.
//
// Activations count as matrices of [tokens, features], whatever their axes; tokens are those of all samples. Their
// layouts and what converts one into another are those of strategies/sbp.
#pragma once
#include <cstdint>
#include <vector>

#include "models/model.hpp"
#include "strategies/model_parallel.hpp"
#include "strategies/sbp/boxing.hpp"

namespace simsync {

inline constexpr Sbp kByTokens = Sbp::split(0);    ///< rows of an activation
inline constexpr Sbp kByFeatures = Sbp::split(1);  ///< its last axis: columns, heads, a part of the vocabulary

/// Experts of a mixture of experts: of its first layer that has any. 0: it is none.
int experts_of(const Model& model);

/// Of a layer's activations and their gradients, along the mesh axis of the tensor-parallel ranks.
struct ActivationLayouts {
  Sbp input;        ///< that it asks for
  Sbp output;       ///< that it leaves
  Sbp output_grad;  ///< that its backward pass asks for: as the output, and whole where that is a partial sum
  Sbp input_grad;   ///< that its backward pass leaves
};
ActivationLayouts layouts_of(LayerSplit split);

/// Of a variable of a layer that is split so, by the axes of the variable: a dense layer's matrix is [out, in], its
/// bias [out].
Sbp layout_of(const Variable& variable, LayerSplit split);

/// How tensor-parallel ranks share out the layers of a model. What `parallel.splits` does not say follows Megatron-LM:
/// a dense layer by columns, the next one that reads its result by rows, what is between them by features or heads,
/// tables by their rows; with `sequence` the rest by tokens. Convolutions, pools and recurrences are shared out by
/// samples (LayerSplit::Tokens), and so is the rest of a model that has any of them, but for its dense layers: "one
/// weird trick" (Krizhevsky, 2014).
/// The router of a mixture of experts, a dense layer with an output for each of them, stays whole; what its experts
/// compute is split as dense layers are.
/// @throws PlanError for a choice that matches no layer and for a split that a layer cannot have.
std::vector<LayerSplit> splits_of(const Model& model, const ModelParallel& parallel);
/// Of samples, not of tokens, some layers get a share: so many in a micro-step must divide among the ranks.
/// @throws PlanError if they do not.
void check_samples(const Model& model, const ModelParallel& parallel, std::int64_t batch);

/// Ranks that convert a tensor together.
enum class BoxingGroup : std::uint8_t {
  Tensor,   ///< tensor-parallel ranks
  Experts,  ///< expert-parallel ranks: rows go to the experts that they meet, and back
};

/// What ranks exchange to convert one tensor.
struct TensorBoxing {
  BoxingOp op = BoxingOp::None;
  double bytes = 0.0;  ///< of the whole tensor that these ranks have together, per sample, in 32-bit elements
  BoxingGroup group = BoxingGroup::Tensor;
};

/// By layer: what happens before its forward and before its backward pass. Slices send nothing and are left out.
struct LayerBoxings {
  std::vector<std::vector<TensorBoxing>> before_forward;
  std::vector<std::vector<TensorBoxing>> before_backward;
};
/// Tensors that several layers read in one layout are converted once. A layer that is split by columns and keeps only
/// its tokens' share of its input gathers it once more for its backward pass (Megatron-LM). A loss over a split
/// vocabulary exchanges three numbers a row: the largest logit, the sum of exponentials and the target's logit.
///
/// Rows of a mixture of experts cross its expert-parallel ranks twice in each pass, evenly spread over the experts: as
/// a tensor-parallel rank has them before they are converted for the experts, and after they were converted back.
LayerBoxings layer_boxings(const Model& model, const std::vector<LayerSplit>& splits, const ModelParallel& parallel);

/// What one of so many ranks computes of a layer, without its variables. @throws PlanError where heads do not divide
/// evenly among the ranks.
Layer part_of(const Layer& layer, LayerSplit split, int ranks);
/// The shape of what it holds of a variable: the largest part where an axis does not divide evenly.
std::vector<std::int64_t> part_of(const Variable& variable, LayerSplit split, int ranks);

}  // namespace simsync
