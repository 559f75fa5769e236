// Blocks of a model, and what of them the backward pass computes again.
#pragma once
#include <string>
#include <vector>

#include "models/model.hpp"

namespace simsync {

/// Layers in a row whose names agree up to their first number: `layers.7`.
struct Block {
  std::string name;
  LayerId first = 0;
  LayerId last = 0;
};

/// The block that a layer belongs to: its name up to the first part that is a number; empty outside of blocks. Parts
/// are separated by '.' or '/'.
std::string block_of(const std::string& layer);
/// In forward order. A block whose layers do not stand together is several.
std::vector<Block> blocks_of(const Model& model);

/// Which activations of a block are dropped after its forward pass and computed again before its backward pass.
enum class Recompute {
  None,
  /// All but what products, convolutions and recurrent layers give; of an attention that is no single kernel its
  /// scores, too (Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022).
  Selective,
  /// As Selective, and every second matrix product of a block: the per-op option of torchtitan (`selective_ac_option =
  /// "op"`, torchtitan/models/llama3/parallelize.py).
  SelectiveOp,
  Full,  ///< all but the block's input (Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016)
};
const char* name_of(Recompute recompute);

/// by_layer[l]: whether the forward pass of layer l is run again. Layers outside of blocks never are.
std::vector<bool> recomputed_layers(const Model& model, Recompute recompute);

}  // namespace simsync
