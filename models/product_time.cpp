#include "models/product_time.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/error.hpp"

namespace simsync {
namespace {

/// Edge of the smallest tile of the result: cuBLAS's kernels have tiles of 64 to 256.
constexpr double kTile = 64.0;
/// Blocks that share the inner axis of one tile.
constexpr std::array<double, 5> kSplits = {1.0, 2.0, 4.0, 8.0, 16.0};
/// A partial sum of 32 bits is written and read.
constexpr double kPartialBytes = 8.0;
/// Arithmetic and transfers overlap, but not where one has to wait for the other: 1 would be one after the other, a
/// large power the longer of the two. From 2 to 4 no error of slowdowns in models/README.md (512 rows and more) changes
/// by 0.4 points.
constexpr double kOverlap = 3.0;

/// [rows, inner] times [inner, columns], `count` times at once.
struct Shape {
  double rows = 1.0;
  double inner = 1.0;
  double columns = 1.0;
  double count = 1.0;
};

double padded(double length) {
  return kTile * std::ceil(length / kTile);
}

Seconds time_of(const Shape& shape, double rate, const Roofline& roofline) {
  const double memory = roofline.memory.value() * roofline.memory_efficiency;
  const double results = shape.count * shape.rows * shape.columns;
  const double tiled = shape.count * padded(shape.rows) * padded(shape.columns);
  double arithmetic = std::numeric_limits<double>::infinity();
  for (const double split : kSplits) {
    const double work = 2.0 * (split * tiled + roofline.half_area) * (shape.inner / split + roofline.half_depth);
    const double partial = split > 1.0 ? kPartialBytes * split * results : 0.0;
    arithmetic = std::min(arithmetic, work / rate + partial / memory);
  }
  const double operands = shape.count * shape.inner * (shape.rows + shape.columns);
  const double transfer = roofline.element_bytes * (operands + results) / memory;
  const double powers = std::pow(arithmetic, kOverlap) + std::pow(transfer, kOverlap);
  return roofline.launch + Seconds{std::pow(powers, 1.0 / kOverlap)};
}

Shape shape_of(const MatrixProduct& product, std::int64_t batch) {
  SIMSYNC_ASSERT(batch >= 1);
  const auto samples = std::ceil(static_cast<double>(batch) / static_cast<double>(product.sample_parts));
  Shape shape{.rows = static_cast<double>(product.rows),
              .inner = static_cast<double>(product.inner),
              .columns = static_cast<double>(product.columns),
              .count = static_cast<double>(product.heads)};
  (product.weights ? shape.rows : shape.count) *= samples;
  return shape;
}

/// dy [rows, columns] times w^T [columns, inner].
Shape first_gradient(const Shape& shape) {
  return {.rows = shape.rows, .inner = shape.columns, .columns = shape.inner, .count = shape.count};
}

/// x^T [inner, rows] times dy [rows, columns].
Shape second_gradient(const Shape& shape) {
  return {.rows = shape.inner, .inner = shape.rows, .columns = shape.columns, .count = shape.count};
}

LayerTime time_of(const MatrixProduct& product, std::int64_t batch, const Roofline& roofline, bool data_gradient) {
  const Shape shape = shape_of(product, batch);
  const auto steps = static_cast<double>(product.steps);
  // The gradients are products of these matrices and of one like the result: their rows are as long.
  const double rate = product_rate(product, roofline).value();
  Seconds backward = time_of(second_gradient(shape), rate, roofline);
  if (data_gradient) backward += time_of(first_gradient(shape), rate, roofline);
  return {.forward = steps * time_of(shape, rate, roofline), .backward = steps * backward};
}

bool is_aligned(std::int64_t elements, double element_bytes) {
  constexpr double kLoad = 16.0;
  return std::fmod(static_cast<double>(elements) * element_bytes, kLoad) == 0.0;
}

}  // namespace

FlopsPerSecond product_rate(const MatrixProduct& product, const Roofline& roofline) {
  const double bytes = roofline.element_bytes;
  const bool aligned = is_aligned(product.inner, bytes) && is_aligned(product.columns, bytes);
  const double share = roofline.compute_efficiency;
  return (aligned ? share : std::min(share, roofline.unaligned_efficiency.value_or(share))) * roofline.peak;
}

LayerTime product_time(const MatrixProduct& product, std::int64_t batch, const Roofline& roofline) {
  return time_of(product, batch, roofline, true);
}

LayerTime product_time(const Operation& operation, std::int64_t batch, const Roofline& roofline) {
  LayerTime sum;
  for (const MatrixProduct& product : operation.products) {
    const LayerTime time = time_of(product, batch, roofline, operation.data_gradient);
    sum.forward += time.forward;
    sum.backward += time.backward;
  }
  if (operation.first_product_again && !operation.products.empty())
    sum.backward += product_time(operation.products.front(), batch, roofline).forward;
  return sum;
}

MatrixProduct part_of(const MatrixProduct& product, ProductCut cut) {
  SIMSYNC_ASSERT(cut.parts >= 1);
  MatrixProduct part = product;
  const auto shorten = [&](std::int64_t& length) { length = (length + cut.parts - 1) / cut.parts; };
  switch (cut.axis) {
    case ProductAxis::Rows:
      if (part.rows % cut.parts == 0) {
        part.rows /= cut.parts;
      } else {
        part.sample_parts *= cut.parts;
      }
      break;
    case ProductAxis::Inner:
      shorten(part.inner);
      break;
    case ProductAxis::Columns:
      shorten(part.columns);
      break;
    case ProductAxis::Heads:
      shorten(part.heads);
      break;
  }
  return part;
}

}  // namespace simsync
