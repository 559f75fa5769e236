// What ranks that share out layers have to exchange for it.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "strategies/sbp/boxing.hpp"
#include "strategies/split_layers.hpp"

namespace simsync {

/// Ranks that convert a tensor together.
enum class BoxingGroup : std::uint8_t {
  Tensor,   ///< tensor-parallel ranks
  Experts,  ///< expert-parallel ranks: rows go to the experts that they meet, and back
  Context,  ///< context-parallel ranks: keys and values of all tokens, and their gradients
};
/// How many such ranks there are.
int ranks_of(BoxingGroup group, const ModelParallel& parallel);

/// What ranks exchange to convert one tensor.
struct TensorBoxing {
  BoxingOp op = BoxingOp::None;
  double bytes = 0.0;  ///< of the whole tensor that these ranks have together, per sample, in 32-bit elements
  BoxingGroup group = BoxingGroup::Tensor;
};

/// Whether it runs beside the pass of a layer of kind `next`, which it is for, or beside that of the layer before, of
/// kind `previous` (none: no pass of a layer), whose result it is of: ModelParallel::tensor_overlap, context_overlap.
/// What a stage's pass begins with does not: it waits for another stage.
bool runs_beside(const ModelParallel& parallel, const TensorBoxing& step, LayerKind next,
                 std::optional<LayerKind> previous);

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
///
/// Context-parallel ranks gather the keys and values of all tokens before the forward and before the backward pass of
/// attention, and reduce-scatter their gradients after the latter.
LayerBoxings layer_boxings(const Model& model, const std::vector<LayerSplit>& splits, const ModelParallel& parallel);

}  // namespace simsync
