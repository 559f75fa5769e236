// Seconds of matrix products from their shapes, and how much slower the parts of a product are than the whole.
//
// Tensor parallelism cuts a product into parts that are narrow or shallow. An estimate by work alone (roofline.hpp)
// does not tell a narrow part from a shallow one. No profile is made from product_time: a part of a layer takes the
// layer's time times the product_time of the part over that of the whole (sim/plan/stage_profile.hpp).
#pragma once
#include <cstdint>

#include "models/operation.hpp"
#include "models/profile.hpp"

namespace simsync {

/// Rate of a large product. Its matrices lie in memory row by row, so that loads of 16 bytes begin at every row only
/// where the inner axis and the columns are multiples of 16 bytes.
FlopsPerSecond product_rate(const MatrixProduct& product, const Roofline& roofline);

/// Forward and backward of one product for `batch` samples, each a kernel of its own; `batch` adds rows where the
/// product has weights, else products. Backward is the gradients of both operands.
///
/// A product of [m, k] with [k, n], `count` times at once, takes launch + (arithmetic^3 + transfer^3)^(1/3) with
///
///     arithmetic = min over s of 2 (s count m' n' + half_area) (k / s + half_depth) / rate + sums(s)
///
///     sums(s) = 8 s count m n / memory for s > 1, else 0
///
///     transfer = element_bytes count (m k + k n + m n) / memory
///
/// where rate is product_rate and memory the share of the peak rate that large copies reach. m' and n' are m and n
/// rounded up to tiles of 64. s is 1, 2, 4, 8 or 16: so many blocks share the inner axis and add up 32-bit partial
/// sums. half_area is Hockney and Jesshope's n_1/2 of the result: what idles while the last tiles are computed.
/// half_depth is that of the inner axis: a tile's first operands have to arrive before it computes, and its result has
/// to leave after it. models/README.md (Products) has the sources of both and how far it is off.
LayerTime product_time(const MatrixProduct& product, std::int64_t batch, const Roofline& roofline);

/// Of all products of a layer, one after another, without what is computed between them. A layer that reads only the
/// sample has no gradient of it, and a fused attention computes its first product again before its backward pass. A
/// convolution counts for nothing here.
LayerTime product_time(const Operation& operation, std::int64_t batch, const Roofline& roofline);

/// What a product is cut along.
enum class ProductAxis : std::uint8_t {
  Rows,     ///< of the first operand: tokens
  Inner,    ///< rows of the weight; the parts' results have to be added up, which is not counted here
  Columns,  ///< of the weight
  Heads,    ///< products that are independent of one another
};

struct ProductCut {
  ProductAxis axis = ProductAxis::Columns;
  std::int64_t parts = 1;  ///< at least 1
};

/// The largest part of `product`. Rows of a sample that do not divide are not cut: the parts have some samples each.
/// More parts than the axis is long leave the largest with one entry.
MatrixProduct part_of(const MatrixProduct& product, ProductCut cut);

}  // namespace simsync
