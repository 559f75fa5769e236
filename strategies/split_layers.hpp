// Which part of every layer a rank computes, where several compute a replica together.
//
// Activations count as matrices of [tokens, features], whatever their axes; tokens are those of all samples. Their
// layouts and what converts one into another are those of strategies/sbp.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/model.hpp"
#include "strategies/model_parallel.hpp"
#include "strategies/sbp/boxing.hpp"

namespace simsync {

inline constexpr Sbp kByTokens = Sbp::split(0);    ///< rows of an activation
inline constexpr Sbp kByFeatures = Sbp::split(1);  ///< its last axis: columns, heads, a part of the vocabulary

/// The layers that a layer reads.
std::vector<LayerId> inputs_of(const Model& model, LayerId id);

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

/// Why context-parallel ranks cannot share out the tokens of a model: a layer looks at whole samples, or its rows do
/// not divide. None: they can.
std::optional<std::string> obstacle_to_context(const Model& model, const ModelParallel& parallel);

/// What one rank computes of a layer, without its variables: of what tensor-parallel ranks share out as `split` says
/// its share of the tokens. @throws PlanError where heads, of queries or of keys and values, do not divide evenly among
/// the ranks.
Layer part_of(const Layer& layer, LayerSplit split, const ModelParallel& parallel);
/// The shape of what it holds of a variable: the largest part where an axis does not divide evenly.
std::vector<std::int64_t> part_of(const Variable& variable, LayerSplit split, int ranks);

}  // namespace simsync
