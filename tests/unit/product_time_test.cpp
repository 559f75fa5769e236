// Times of matrix products and of their parts, by hand.
#include "models/product_time.hpp"

#include <cmath>

#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

/// A tile of 64 x 64, 10 deep, takes a second. Operands have no bytes, so transfers take no time; partial sums have,
/// and take so long that none are made.
Roofline plain() {
  return {.peak = FlopsPerSecond{2.0 * 64 * 64 * 10},
          .memory = BytesPerSecond{1.0},
          .launch = Seconds{0.0},
          .compute_efficiency = 1.0,
          .memory_efficiency = 1.0,
          .element_bytes = 0.0,
          .half_area = 0.0,
          .half_depth = 0.0};
}

double forward_of(const MatrixProduct& product, const Roofline& roofline, std::int64_t batch = 1) {
  return product_time(product, batch, roofline).forward.value();
}

constexpr MatrixProduct kTile{.rows = 64, .inner = 10, .columns = 64};

/// Time of the largest part times the number of parts, over the time of the whole.
LayerTime slowdown(const MatrixProduct& product, ProductCut cut, const Roofline& roofline) {
  const LayerTime whole = product_time(product, 1, roofline);
  const LayerTime part = product_time(part_of(product, cut), 1, roofline);
  const auto parts = static_cast<double>(cut.parts);
  return {.forward = Seconds{parts * (part.forward / whole.forward)},
          .backward = Seconds{parts * (part.backward / whole.backward)}};
}

}  // namespace

TEST_CASE("a product takes its work, in whole tiles, and a launch", "[models][product]") {
  Roofline roofline = plain();
  CHECK_THAT(forward_of(kTile, roofline), WithinRel(1.0, 1e-12));
  roofline.launch = Seconds{0.5};
  CHECK_THAT(forward_of(kTile, roofline), WithinRel(1.5, 1e-12));
  // Half the share of the peak: twice the time.
  roofline.compute_efficiency = 0.5;
  CHECK_THAT(forward_of(kTile, roofline), WithinRel(2.5, 1e-12));
  // 65 columns are two tiles, and so are 128.
  CHECK_THAT(forward_of({.rows = 64, .inner = 10, .columns = 65}, roofline), WithinRel(4.5, 1e-12));
  CHECK_THAT(forward_of({.rows = 64, .inner = 10, .columns = 128}, roofline), WithinRel(4.5, 1e-12));
  // Three steps are three kernels.
  CHECK_THAT(forward_of({.rows = 64, .inner = 10, .columns = 64, .steps = 3}, roofline), WithinRel(7.5, 1e-12));
}

TEST_CASE("rows that are no multiple of 16 bytes compute at a rate of their own", "[models][product]") {
  Roofline roofline = plain();
  roofline.element_bytes = 2.0;
  roofline.memory = BytesPerSecond{1e30};
  // Ten elements of two bytes are no multiple of 16, and without a rate of their own they are as fast as others.
  CHECK_THAT(forward_of(kTile, roofline), WithinRel(1.0, 1e-12));
  roofline.unaligned_efficiency = 0.25;
  CHECK_THAT(forward_of(kTile, roofline), WithinRel(4.0, 1e-12));
  // 16 elements deep: 1.6 s; 60 columns, no multiple of 8, are in a tile of 64 as well.
  CHECK_THAT(forward_of({.rows = 64, .inner = 16, .columns = 64}, roofline), WithinRel(1.6, 1e-12));
  CHECK_THAT(forward_of({.rows = 64, .inner = 16, .columns = 60}, roofline), WithinRel(6.4, 1e-12));
  CHECK_THAT(forward_of({.rows = 63, .inner = 16, .columns = 64}, roofline), WithinRel(1.6, 1e-12));
  // It is never faster than others.
  roofline.unaligned_efficiency = 1.0;
  roofline.compute_efficiency = 0.5;
  CHECK_THAT(forward_of(kTile, roofline), WithinRel(2.0, 1e-12));
}

TEST_CASE("a batch adds rows to a weight's product and products to others", "[models][product]") {
  // One row is padded to a tile of 64. 64 samples of one row fill it; 64 products of one row are 64 tiles.
  CHECK_THAT(forward_of({.rows = 1, .inner = 10, .columns = 64}, plain(), 64), WithinRel(1.0, 1e-12));
  CHECK_THAT(forward_of({.rows = 1, .inner = 10, .columns = 64, .weights = false}, plain(), 64),
             WithinRel(64.0, 1e-12));
  // Four samples of three heads are twelve products.
  CHECK_THAT(forward_of({.rows = 64, .inner = 10, .columns = 64, .weights = false, .heads = 3}, plain(), 4),
             WithinRel(12.0, 1e-12));
}

TEST_CASE("a narrow result and a short inner axis compute at less than full speed", "[models][product]") {
  Roofline roofline = plain();
  roofline.half_area = 4096.0;
  // A result of 4,096 elements runs at half speed, one of 8,192 at two thirds: (2 + 1) tiles.
  CHECK_THAT(forward_of(kTile, roofline), WithinRel(2.0, 1e-12));
  CHECK_THAT(forward_of({.rows = 64, .inner = 10, .columns = 128}, roofline), WithinRel(3.0, 1e-12));
  roofline.half_area = 0.0;
  roofline.half_depth = 10.0;
  CHECK_THAT(forward_of(kTile, roofline), WithinRel(2.0, 1e-12));
  CHECK_THAT(forward_of({.rows = 64, .inner = 20, .columns = 64}, roofline), WithinRel(3.0, 1e-12));
}

TEST_CASE("a small result is computed in parts of its inner axis where that is faster", "[models][product]") {
  Roofline roofline = plain();
  roofline.half_area = 15 * 4096.0;
  roofline.memory = BytesPerSecond{1e30};
  // In one part (1 + 15) tiles x 16 / 10 s = 25.6 s; in sixteen, (16 + 15) tiles x 1 / 10 s = 3.1 s.
  const MatrixProduct product{.rows = 64, .inner = 16, .columns = 64};
  CHECK_THAT(forward_of(product, roofline), WithinRel(3.1, 1e-12));
  // Partial sums have 8 x 4,096 = 32,768 bytes a part, which take a second here: s parts take (s + 15) 1.6 / s + s
  // seconds for s of two and more, 13.6 + 2, 7.6 + 4, 4.6 + 8 and 3.1 + 16, and 25.6 for one: four are the best.
  // Operands and result have 4 (2 x 16 x 64 + 4,096) = 24,576 bytes: 0.75 s.
  roofline.memory = BytesPerSecond{32768.0};
  roofline.element_bytes = 4.0;
  CHECK_THAT(forward_of(product, roofline), WithinRel(std::cbrt(11.6 * 11.6 * 11.6 + 0.75 * 0.75 * 0.75), 1e-12));
}

TEST_CASE("transfers hide behind arithmetic, less where both take as long", "[models][product]") {
  Roofline roofline = plain();
  // 4 bytes of 2 x 64 x 10 + 4,096 elements are 21,504. At that rate both take a second: 2^(1/3) s.
  roofline.memory = BytesPerSecond{21504.0};
  roofline.element_bytes = 4.0;
  CHECK_THAT(forward_of(kTile, roofline), WithinRel(1.25992104989487, 1e-12));
  // Two bytes an element: half a second, (1 + 1/8)^(1/3).
  roofline.element_bytes = 2.0;
  CHECK_THAT(forward_of(kTile, roofline), WithinRel(1.04004191152595, 1e-12));
}

TEST_CASE("the backward pass is the gradients of both operands", "[models][product]") {
  Roofline roofline = plain();
  roofline.launch = Seconds{0.25};
  // [128, 10] x [10, 64]: of the first operand [128, 64] x [64, 10], 2 tiles (10 columns count as 64) 64 deep, 12.8 s;
  // of the second [10, 128] x [128, 64], 1 tile 128 deep, 12.8 s.
  const MatrixProduct product{.rows = 128, .inner = 10, .columns = 64};
  const LayerTime time = product_time(product, 1, roofline);
  CHECK_THAT(time.forward.value(), WithinRel(2.25, 1e-12));
  CHECK_THAT(time.backward.value(), WithinRel(26.1, 1e-12));

  // A layer sums its products; one that reads the sample leaves out the first gradient, a fused attention computes its
  // first product again.
  Operation layer{.products = {product, kTile}};
  CHECK_THAT(product_time(layer, 1, roofline).forward.value(), WithinRel(2.25 + 1.25, 1e-12));
  // Of the tile: two gradients of one tile, 64 deep, 6.4 s each.
  CHECK_THAT(product_time(layer, 1, roofline).backward.value(), WithinRel(26.1 + 13.3, 1e-12));
  layer.data_gradient = false;
  CHECK_THAT(product_time(layer, 1, roofline).backward.value(), WithinRel(13.05 + 6.65, 1e-12));
  layer.first_product_again = true;
  CHECK_THAT(product_time(layer, 1, roofline).backward.value(), WithinRel(13.05 + 6.65 + 2.25, 1e-12));
}

TEST_CASE("a part is slower than its share of the whole", "[models][product]") {
  const MatrixProduct product{.rows = 64, .inner = 40, .columns = 256, .heads = 4};
  CHECK(part_of(product, {ProductAxis::Rows, 2}).rows == 32);
  // A classifier has one row a sample: of 512 samples four ranks have 128 each, two tiles of 64 rows instead of eight.
  const MatrixProduct classifier{.rows = 1, .inner = 10, .columns = 64};
  CHECK_THAT(product_time(part_of(classifier, {ProductAxis::Rows, 4}), 512, plain()).forward.value(),
             WithinRel(2.0, 1e-12));
  CHECK_THAT(product_time(classifier, 512, plain()).forward.value(), WithinRel(8.0, 1e-12));
  CHECK(part_of(product, {ProductAxis::Inner, 3}).inner == 14);
  CHECK(part_of(product, {ProductAxis::Columns, 2}).columns == 128);
  CHECK(part_of(product, {ProductAxis::Heads, 8}).heads == 1);

  Roofline roofline = plain();
  roofline.half_area = 4096.0;
  // Whole (16 + 1) tiles, half of the columns (8 + 1): 18 / 17.
  CHECK_THAT(slowdown(product, {ProductAxis::Columns, 2}, roofline).forward.value(), WithinRel(18.0 / 17.0, 1e-12));
  roofline.half_area = 0.0;
  roofline.half_depth = 10.0;
  // Whole 40 + 10, half of the inner axis 20 + 10: 60 / 50. The columns' cut costs nothing.
  CHECK_THAT(slowdown(product, {ProductAxis::Inner, 2}, roofline).forward.value(), WithinRel(1.2, 1e-12));
  CHECK_THAT(slowdown(product, {ProductAxis::Columns, 2}, roofline).forward.value(), WithinRel(1.0, 1e-12));
  // Its backward pass has the columns as the inner axis of one gradient and keeps 40 as 64 columns. Whole, in tiles of
  // four heads: 4 x 1 x (256 + 10) and 4 x 1 x 4 x (64 + 10); half: 4 x (128 + 10) and 4 x 2 x (64 + 10).
  CHECK_THAT(slowdown(product, {ProductAxis::Columns, 2}, roofline).backward.value(),
             WithinRel(2.0 * (4 * 138 + 8 * 74) / (4 * 266 + 16 * 74), 1e-12));
  // Three parts of 40 are 14, 13 and 13: 3 x (14 + 10) / (40 + 10).
  CHECK_THAT(slowdown(product, {ProductAxis::Inner, 3}, roofline).forward.value(), WithinRel(72.0 / 50.0, 1e-12));
}

TEST_CASE("no part is faster than its share, whatever the shape", "[models][product]") {
  const Roofline roofline{.peak = FlopsPerSecond{312e12},
                          .memory = BytesPerSecond{2039e9},
                          .launch = Seconds{4e-6},
                          .compute_efficiency = 0.5,
                          .memory_efficiency = 0.8,
                          .element_bytes = 2.0};
  for (const std::int64_t rows : {1, 100, 4096})
    for (const std::int64_t inner : {1, 768, 11008})
      for (const std::int64_t columns : {1, 1000, 50304})
        for (const auto axis : {ProductAxis::Rows, ProductAxis::Inner, ProductAxis::Columns, ProductAxis::Heads}) {
          const MatrixProduct product{.rows = rows, .inner = inner, .columns = columns, .heads = 16};
          CHECK(slowdown(product, {axis, 1}, roofline).forward.value() == 1.0);
          double before = 1.0;
          for (const std::int64_t parts : {2, 4, 8}) {
            const LayerTime slower = slowdown(product, {axis, parts}, roofline);
            CHECK(slower.forward.value() >= before * (1.0 - 1e-12));
            CHECK(slower.backward.value() >= 1.0 - 1e-12);
            before = slower.forward.value();
          }
        }
}
