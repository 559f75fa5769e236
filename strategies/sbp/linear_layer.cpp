#include "strategies/sbp/linear_layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "strategies/sbp/op_signatures.hpp"

namespace simsync {
namespace {

/// Of the transposed matrix.
SbpTuple transposed(SbpTuple tuple) {
  for (Sbp& entry : tuple)
    if (entry.is_split()) entry.axis = 1 - entry.axis;
  return tuple;
}

SbpTuple product(TensorShape a_shape, std::int64_t n, const DeviceMesh& mesh, const std::vector<SbpTuple>& factors) {
  return derive_outputs(matmul_call(a_shape[0], a_shape[1], n), mesh, factors).front();
}

/// Sums instead of addends.
SbpTuple summed(SbpTuple tuple) {
  std::replace(tuple.begin(), tuple.end(), Sbp::partial(), Sbp::broadcast());
  return tuple;
}

}  // namespace

bool fits(const LinearLayer& layer, const LinearGrid& grid) {
  return grid.m <= layer.m && grid.k <= layer.k && grid.n <= layer.n;
}

double elements_sent(const LinearLayer& layer, const LinearGrid& grid) {
  const auto m = static_cast<double>(layer.m);
  const auto k = static_cast<double>(layer.k);
  const auto n = static_cast<double>(layer.n);
  return 2.0 / grid.ranks() * ((grid.m - 1) * k * n + (grid.k - 1) * m * n + (grid.n - 1) * m * k);
}

double least_elements_sent(const LinearLayer& layer, int ranks) {
  const auto m = static_cast<double>(layer.m);
  const auto k = static_cast<double>(layer.k);
  const auto n = static_cast<double>(layer.n);
  const double side = std::cbrt(m * n * k / ranks);
  return 6.0 * side * side - 2.0 / ranks * (k * n + m * n + m * k);
}

std::vector<LinearGrid> grids_of(int ranks) {
  std::vector<LinearGrid> out;
  for (int m = 1; m <= ranks; ++m) {
    if (ranks % m != 0) continue;
    for (int k = 1; k <= ranks / m; ++k)
      if (ranks / m % k == 0) out.push_back({.m = m, .k = k, .n = ranks / m / k});
  }
  return out;
}

LinearGrid best_grid(const LinearLayer& layer, int ranks) {
  std::vector<LinearGrid> grids = grids_of(ranks);
  std::erase_if(grids, [&](const LinearGrid& grid) { return !fits(layer, grid); });
  if (grids.empty())
    throw PlanError(fmt::format("no grid of {} ranks fits a linear layer with m = {}, k = {}, n = {}", ranks, layer.m,
                                layer.k, layer.n));
  return *std::min_element(grids.begin(), grids.end(), [&](const LinearGrid& a, const LinearGrid& b) {
    return elements_sent(layer, a) < elements_sent(layer, b);
  });
}

std::string text_of(const LinearSplits& splits) {
  std::string out;
  for (const LinearSplit split : splits) out += split == LinearSplit::M ? 'm' : split == LinearSplit::K ? 'k' : 'n';
  return out;
}

LinearGrid grid_of(const LinearSplits& splits, const DeviceMesh& mesh) {
  SIMSYNC_ASSERT(static_cast<int>(splits.size()) == mesh.axis_count());
  LinearGrid out;
  for (int a = 0; a < mesh.axis_count(); ++a) {
    const LinearSplit split = splits[static_cast<std::size_t>(a)];
    (split == LinearSplit::M ? out.m : split == LinearSplit::K ? out.k : out.n) *= mesh.size(a);
  }
  return out;
}

LinearLayouts linear_layouts(const LinearLayer& layer, const DeviceMesh& mesh, const LinearSplits& splits) {
  SIMSYNC_ASSERT(static_cast<int>(splits.size()) == mesh.axis_count());
  LinearLayouts out;
  for (const LinearSplit split : splits) {
    out.input.push_back(split == LinearSplit::N ? Sbp::broadcast() : Sbp::split(split == LinearSplit::K ? 1 : 0));
    out.weight.push_back(split == LinearSplit::M ? Sbp::broadcast() : Sbp::split(split == LinearSplit::N ? 1 : 0));
  }
  out.output = product({layer.m, layer.k}, layer.n, mesh, {out.input, out.weight});
  out.output_grad = summed(out.output);
  out.input_grad = product({layer.m, layer.n}, layer.k, mesh, {out.output_grad, transposed(out.weight)});
  out.weight_grad = product({layer.k, layer.m}, layer.n, mesh, {transposed(out.input), out.output_grad});
  return out;
}

std::vector<BoxingPath> linear_boxing(const LinearLayer& layer, const LinearSplits& splits, const BoxingMesh& mesh) {
  const LinearLayouts layouts = linear_layouts(layer, mesh.mesh, splits);
  const auto boxing = [&](TensorShape shape, const SbpTuple& from, const SbpTuple& to) {
    return BoxingPaths(mesh.mesh, mesh.links, {std::move(shape), mesh.element_bytes}, mesh.options).path(from, to);
  };
  return {boxing({layer.m, layer.n}, layouts.output, layouts.output_grad),
          boxing({layer.m, layer.k}, layouts.input_grad, layouts.input),
          boxing({layer.k, layer.n}, layouts.weight_grad, layouts.weight)};
}

}  // namespace simsync
