// Which part of every layer a tensor-parallel rank computes, and what the ranks have to exchange for it.
//
// A tensor that several ranks compute is, in the words of OneFlow's SBP signatures, split along an axis (S), the same
// on all of them (B), or a partial sum on each (P). A layer asks for its input in one of these states and leaves its
// output in one; where neighbors disagree, a collective converts between them.
#pragma once
#include <cstdint>
#include <vector>

#include "models/model.hpp"

namespace simsync {

/// What the ranks hold of a tensor.
enum class TensorState : std::uint8_t {
  Whole,     ///< B
  Features,  ///< S of its last axis: columns, heads, a part of the vocabulary
  Tokens,    ///< S of its rows
  Partial,   ///< P
};

/// What a rank computes of a layer; as Megatron-LM has it for transformers.
enum class LayerSplit : std::uint8_t {
  Whole,       ///< all of it, as every other rank: B -> B
  Columns,     ///< a dense layer's columns: B -> S(features); its input gradient is P
  Rows,        ///< a dense layer's rows: S(features) -> P
  Features,    ///< element by element, or attention head by head: S(features) -> S(features)
  Tokens,      ///< row by row, sequence parallelism: S(tokens) -> S(tokens)
  Vocabulary,  ///< rows of a table that is looked up: -> P
};

TensorState input_of(LayerSplit split);
TensorState output_of(LayerSplit split);
/// Of the gradient that a layer gives for its input.
TensorState input_gradient_of(LayerSplit split);
/// Of the gradient that a layer needs of its output: as the output, and whole where that is a partial sum.
TensorState output_gradient_of(LayerSplit split);

/// How Megatron-LM splits the layers of a transformer: a dense layer by columns, the next one that reads its result by
/// rows, what is between them by features or heads, tables by their rows; with `sequence` the rest by tokens.
/// @throws PlanError for a layer that cannot be split so: a convolution, a recurrence, experts.
std::vector<LayerSplit> megatron_splits(const Model& model, bool sequence);

/// A conversion between two states of a tensor.
enum class Boxing : std::uint8_t { None, AllReduce, ReduceScatter, AllGather, Slice };
/// P -> B all-reduce, P -> S(tokens) reduce-scatter, S -> B all-gather, B -> S a local slice.
/// @throws PlanError for one that no split here asks for.
Boxing boxing(TensorState from, TensorState to);

/// A collective of the tensor-parallel ranks on one tensor.
struct BoxingStep {
  Boxing kind = Boxing::None;
  double bytes = 0.0;  ///< of the whole tensor, per sample, in 32-bit elements
};

/// By layer: what happens before its forward and before its backward pass.
struct BoxingSteps {
  std::vector<std::vector<BoxingStep>> before_forward;
  std::vector<std::vector<BoxingStep>> before_backward;
};
/// Tensors that several layers read in one state are converted once. A layer that is split by columns and keeps only
/// its tokens' share of its input gathers it once more for its backward pass (Megatron-LM). A loss over a split
/// vocabulary exchanges three numbers a row: the largest logit, the sum of exponentials and the target's logit.
BoxingSteps boxing_steps(const Model& model, const std::vector<LayerSplit>& splits);

/// What one of so many ranks computes of a layer, without its variables. @throws PlanError where heads do not divide
/// evenly among the ranks.
Layer part_of(const Layer& layer, LayerSplit split, int ranks);
/// The shape of what it holds of a variable: the largest part where an axis does not divide evenly.
std::vector<std::int64_t> part_of(const Variable& variable, LayerSplit split, int ranks);

}  // namespace simsync
