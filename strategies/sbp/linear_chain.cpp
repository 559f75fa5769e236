#include "strategies/sbp/linear_chain.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>

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

/// Boxing by the shape of a matrix. Layers of one shape look up what the first has searched.
class Boxings {
public:
  explicit Boxings(const BoxingMesh& mesh) : mesh_(mesh) {}
  BoxingPaths& of(std::int64_t rows, std::int64_t columns) {
    auto found = paths_.find({rows, columns});
    if (found == paths_.end()) {
      BoxingPaths paths(mesh_.mesh, mesh_.links, {{rows, columns}, mesh_.element_bytes}, mesh_.options);
      found = paths_.emplace(std::make_pair(rows, columns), std::move(paths)).first;
    }
    return found->second;
  }

private:
  const BoxingMesh& mesh_;
  std::map<std::pair<std::int64_t, std::int64_t>, BoxingPaths> paths_;
};

std::vector<LinearLayouts> layouts_of(const LinearLayer& layer, const std::vector<LinearSplits>& list,
                                      const DeviceMesh& mesh) {
  std::vector<LinearLayouts> out;
  for (const LinearSplits& splits : list) out.push_back(linear_layouts(layer, mesh, splits));
  return out;
}

/// `between` boxes what lies between the layers: forward the output, backward its gradient.
std::vector<std::vector<double>> edges_of(const std::vector<LinearLayouts>& a, const std::vector<LinearLayouts>& b,
                                          BoxingPaths& between) {
  std::vector<std::vector<double>> out(a.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    for (const LinearLayouts& next : b)
      out[i].push_back(between.cost(a[i].output, next.input) + between.cost(next.input_grad, a[i].output_grad));
  return out;
}

}  // namespace

LinearChain linear_chain(const std::vector<LinearLayer>& layers, const BoxingMesh& mesh) {
  check(layers);
  Boxings boxings(mesh);
  LinearChain out;
  std::vector<LinearLayouts> before;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const LinearLayer& layer = layers[l];
    out.candidates.push_back(candidates_of(layer, mesh.mesh));
    std::vector<LinearLayouts> layouts = layouts_of(layer, out.candidates.back(), mesh.mesh);
    std::vector<double> node;
    for (const LinearLayouts& tensors : layouts) {
      node.push_back(boxings.of(layer.k, layer.n).cost(tensors.weight_grad, tensors.weight));
      if (l == 0) node.back() += boxings.of(layer.m, layer.k).cost(tensors.input_grad, tensors.input);
      if (l + 1 == layers.size()) node.back() += boxings.of(layer.m, layer.n).cost(tensors.output, tensors.output_grad);
    }
    out.costs.nodes.push_back(std::move(node));
    if (l > 0) out.costs.edges.push_back(edges_of(before, layouts, boxings.of(layer.m, layer.k)));
    before = std::move(layouts);
  }
  return out;
}

}  // namespace simsync
