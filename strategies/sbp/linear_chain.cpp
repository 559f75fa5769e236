#include "strategies/sbp/linear_chain.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace simsync {
namespace {

void check(const std::vector<LinearLayer>& layers) {
  if (layers.empty()) throw PlanError("a chain without layers: expected at least one");
  for (std::size_t l = 1; l < layers.size(); ++l) {
    const LinearLayer& a = layers[l - 1];
    const LinearLayer& b = layers[l];
    if (a.m != b.m || a.n != b.k)
      throw PlanError(fmt::format("linear layer {} gives [{}, {}] and the next one takes [{}, {}]: expected the same",
                                  l - 1, a.m, a.n, b.m, b.k));
  }
}

/// The next splits, the last mesh axis fastest; false after the last ones.
bool advance(LinearSplits& splits) {
  for (std::size_t a = splits.size(); a-- > 0;) {
    if (splits[a] != LinearSplit::N) {
      splits[a] = splits[a] == LinearSplit::M ? LinearSplit::K : LinearSplit::N;
      return true;
    }
    splits[a] = LinearSplit::M;
  }
  return false;
}

std::vector<LinearSplits> candidates_of(const LinearLayer& layer, const DeviceMesh& mesh) {
  std::vector<LinearSplits> out;
  LinearSplits splits(static_cast<std::size_t>(mesh.axis_count()), LinearSplit::M);
  do {
    if (fits(layer, grid_of(splits, mesh))) out.push_back(splits);
  } while (advance(splits));
  if (out.empty())
    throw PlanError(fmt::format("no split over {} ranks fits a linear layer with m = {}, k = {}, n = {}", mesh.ranks(),
                                layer.m, layer.k, layer.n));
  return out;
}

/// Boxing of matrices of one shape.
BoxingPaths boxing_of(std::int64_t rows, std::int64_t columns, const BoxingMesh& mesh) {
  return {mesh.mesh, mesh.links, {{rows, columns}, mesh.element_bytes}, mesh.options};
}

/// Layouts of a layer's candidates, and what boxing costs of each by itself.
struct Candidates {
  std::vector<LinearLayouts> layouts;
  std::vector<double> weight_grad;
};

Candidates of_layer(const LinearLayer& layer, const std::vector<LinearSplits>& list, const BoxingMesh& mesh) {
  Candidates out;
  BoxingPaths weight = boxing_of(layer.k, layer.n, mesh);
  for (const LinearSplits& splits : list) {
    const LinearLayouts layouts = linear_layouts(layer, mesh.mesh, splits);
    out.weight_grad.push_back(weight.cost(layouts.weight_grad, layouts.weight));
    out.layouts.push_back(layouts);
  }
  return out;
}

/// `between` boxes what lies between the layers: forward the output, backward its gradient.
std::vector<std::vector<double>> edges_of(const std::vector<LinearLayouts>& a, const std::vector<LinearLayouts>& b,
                                          BoxingPaths between) {
  std::vector<std::vector<double>> out(a.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    for (const LinearLayouts& next : b)
      out[i].push_back(between.cost(a[i].output, next.input) + between.cost(next.input_grad, a[i].output_grad));
  return out;
}

}  // namespace

LinearChain linear_chain(const std::vector<LinearLayer>& layers, const BoxingMesh& mesh) {
  check(layers);
  LinearChain out;
  std::vector<Candidates> all;
  for (const LinearLayer& layer : layers) {
    out.candidates.push_back(candidates_of(layer, mesh.mesh));
    all.push_back(of_layer(layer, out.candidates.back(), mesh));
    out.costs.nodes.push_back(all.back().weight_grad);
  }
  for (std::size_t l = 1; l < layers.size(); ++l)
    out.costs.edges.push_back(edges_of(all[l - 1].layouts, all[l].layouts, boxing_of(layers[l].m, layers[l].k, mesh)));
  BoxingPaths first = boxing_of(layers.front().m, layers.front().k, mesh);
  for (std::size_t c = 0; c < all.front().layouts.size(); ++c)
    out.costs.nodes.front()[c] += first.cost(all.front().layouts[c].input_grad, all.front().layouts[c].input);
  BoxingPaths last = boxing_of(layers.back().m, layers.back().n, mesh);
  for (std::size_t c = 0; c < all.back().layouts.size(); ++c)
    out.costs.nodes.back()[c] += last.cost(all.back().layouts[c].output, all.back().layouts[c].output_grad);
  return out;
}

}  // namespace simsync
