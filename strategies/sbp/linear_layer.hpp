// What training one linear layer sends, by how its matrix products are split over ranks.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "strategies/sbp/boxing_paths.hpp"

namespace simsync {

/// Y[m, n] = X[m, k] W[k, n]; m counts all samples of a step, times the tokens of each.
struct LinearLayer {
  std::int64_t m = 1;
  std::int64_t k = 1;
  std::int64_t n = 1;
};

/// Into how many parts m, k and n are cut; one rank for each combination of parts.
struct LinearGrid {
  int m = 1;
  int k = 1;
  int n = 1;
  [[nodiscard]] int ranks() const { return m * k * n; }
  friend auto operator<=>(const LinearGrid&, const LinearGrid&) = default;
};
/// (p,1,1): each rank has its samples and the whole weight.
inline LinearGrid data_parallel(int ranks) {
  return {.m = ranks, .k = 1, .n = 1};
}
/// (1,p,1): each rank has rows of the weight.
inline LinearGrid row_parallel(int ranks) {
  return {.m = 1, .k = ranks, .n = 1};
}
/// (1,1,p): each rank has columns of the weight.
inline LinearGrid column_parallel(int ranks) {
  return {.m = 1, .k = 1, .n = ranks};
}

/// Whether every part has an index.
bool fits(const LinearLayer& layer, const LinearGrid& grid);

/// Elements that each of p ranks sends in a step: V = (2/p) [(pm-1) k n + (pk-1) m n + (pn-1) m k]. These are ring
/// all-reduces of the weight's gradient over pm, of the output over pk, and of the input's gradient over pn, each of
/// what a rank holds. Conversions of layouts between layers are not in it.
double elements_sent(const LinearLayer& layer, const LinearGrid& grid);

/// No grid of p ranks sends less: 6 (m n k/p)^(2/3) - (2/p) (k n + m n + m k), because a sum of three numbers is at
/// least three times the cube root of their product. Met when pm k n = pk m n = pn m k. It says little, and may be
/// negative, where such a grid would cut an axis into less than one part; there the bounds of fewer dimensions hold
/// (Demmel et al., "Communication-optimal parallel recursive rectangular matrix multiplication" (CARMA), IPDPS 2013; Al
/// Daas et al., "Tight memory-independent parallel matrix multiplication communication lower bounds", SPAA 2022).
double least_elements_sent(const LinearLayer& layer, int ranks);

/// All grids of so many ranks, ascending by m, then k.
std::vector<LinearGrid> grids_of(int ranks);
/// The grid that fits and sends least; of equal ones the first of `grids_of`. @throws PlanError when none fits.
LinearGrid best_grid(const LinearLayer& layer, int ranks);

/// Which axis of the products the ranks along a mesh axis share out.
enum class LinearSplit : std::uint8_t { M, K, N };
/// One for each axis of a mesh.
using LinearSplits = std::vector<LinearSplit>;
/// The letters in the order of mesh axes: `mnk`.
std::string text_of(const LinearSplits& splits);
/// The parts that m, k and n are cut into.
LinearGrid grid_of(const LinearSplits& splits, const DeviceMesh& mesh);

/// Layouts of a linear layer's tensors, as derived by `derive_outputs`.
struct LinearLayouts {
  SbpTuple input;        ///< X[m, k]
  SbpTuple weight;       ///< W[k, n]
  SbpTuple output;       ///< Y[m, n] as computed: P along mesh axes that share out k
  SbpTuple output_grad;  ///< dY[m, n] as both products of the backward pass take it: the output's, with B instead of P
  SbpTuple input_grad;   ///< dX[m, k] = dY W^T as computed: P along mesh axes that share out n
  SbpTuple weight_grad;  ///< dW[k, n] = X^T dY as computed: P along mesh axes that share out m
};
/// @throws PlanError when a tensor does not fit.
LinearLayouts linear_layouts(const LinearLayer& layer, const DeviceMesh& mesh, const LinearSplits& splits);

/// A mesh, its links, and how boxing is counted.
struct BoxingMesh {
  DeviceMesh mesh;
  std::vector<AxisLink> links;  ///< by mesh axis
  double element_bytes = 4.0;   ///< of what is sent
  BoxingOptions options;
};
/// Boxing of a linear layer that stands alone in a step: its output to full sums, its input's gradient to the layout of
/// the input, its weight's gradient to that of the weight. `bytes_per_rank` of the three add up to `elements_sent`
/// times the size of an element, whatever the splits, as far as boxing is by the fewest bytes.
/// @throws PlanError when a tensor does not fit.
std::vector<BoxingPath> linear_boxing(const LinearLayer& layer, const LinearSplits& splits, const BoxingMesh& mesh);

}  // namespace simsync
