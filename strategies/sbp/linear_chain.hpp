// Linear layers one behind another, each with its own splits, as a chain to be searched.
#pragma once
#include <vector>

#include "strategies/sbp/chain_search.hpp"
#include "strategies/sbp/linear_layer.hpp"

namespace simsync {

struct LinearChain {
  /// By layer: every way to give each mesh axis to m, k or n that fits; the first is data parallelism if that fits.
  std::vector<std::vector<LinearSplits>> candidates;
  ChainCosts costs;
};

/// Costs of boxing in one training step, in units of the measure of `mesh.options`. Compute is left out: every
/// candidate shares out all of it evenly.
///
/// A layer costs the boxing of its weight's gradient, from addends to the layout of the weight. Two neighbors cost the
/// boxing of the output as the first computes it to the input that the second takes, and that of the gradient the other
/// way round. These may be a reduce-scatter or nothing where the layer by itself has an all-reduce: Megatron's pair of
/// a column-parallel and a row-parallel layer keeps what lies between them as it is. Ends of the chain are layers of
/// their own kind: the first layer's input gradient and the last one's output become full sums in place
/// (`linear_boxing`), so that a chain of one layer costs `elements_sent`.
/// @throws PlanError when there is no layer, none of a layer's candidates fits, or neighbors differ in what lies
/// between.
LinearChain linear_chain(const std::vector<LinearLayer>& layers, const BoxingMesh& mesh);

}  // namespace simsync
