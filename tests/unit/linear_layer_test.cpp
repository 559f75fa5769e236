// Splits of one linear layer: the closed form, its bound, and the boxing that it is the sum of.
#include "strategies/sbp/linear_layer.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

/// A layer of the table, with what it shows: elements that a rank sends, three digits each.
struct Row {
  const char* name;
  LinearLayer layer;
  int ranks;
  const char* data_parallel;
  const char* row;
  const char* column;
  const char* best;
  LinearGrid grid;
  const char* bound;  ///< empty: negative, so that it says nothing
};

constexpr std::int64_t kVggSamples = 32;         ///< on each rank
constexpr std::int64_t kGptTokens = 16 * 2'048;  ///< of all ranks

std::string digits(double value) {
  return fmt::format("{:.2e}", value);
}

BoxingMesh by_bytes(DeviceMesh mesh) {
  const auto axes = static_cast<std::size_t>(mesh.axis_count());
  return {.mesh = std::move(mesh),
          .links = std::vector<AxisLink>(axes, {Seconds{1e-6}, BytesPerSecond{1e9}}),
          .options = {.measure = BoxingMeasure::BytesPerRank}};
}

double bytes_of(const std::vector<BoxingPath>& paths) {
  double bytes = 0.0;
  for (const BoxingPath& path : paths) bytes += path.bytes_per_rank;
  return bytes;
}

}  // namespace

TEST_CASE("best grids of layers of VGG16 and of GPT models", "[sbp]") {
  // From V with m = 32 samples per rank (fc6 25088 x 4096, fc7 4096 x 4096) and 16 x 2048 tokens (GPT). Of fc6 on 16
  // ranks by hand: data parallel 2/16 x 15 x 25088 x 4096 = 1.927e8; row 2/16 x 15 x 512 x 4096 = 3.932e6; column 2/16
  // x 15 x 512 x 25088 = 2.409e7; (1,8,2) 2/16 (7 x 512 x 4096 + 512 x 25088) = 3.441e6.
  const Row rows[] = {
      {"fc6", {16 * kVggSamples, 25'088, 4'096}, 16, "1.93e+08", "3.93e+06", "2.41e+07", "3.44e+06", {1, 8, 2}, ""},
      {"fc6",
       {64 * kVggSamples, 25'088, 4'096},
       64,
       "2.02e+08",
       "1.65e+07",
       "1.01e+08",
       "8.75e+06",
       {1, 16, 4},
       "8.19e+06"},
      {"fc7",
       {16 * kVggSamples, 4'096, 4'096},
       16,
       "3.15e+07",
       "3.93e+06",
       "3.93e+06",
       "1.57e+06",
       {1, 4, 4},
       "1.34e+06"},
      {"fc7",
       {64 * kVggSamples, 4'096, 4'096},
       64,
       "3.30e+07",
       "1.65e+07",
       "1.65e+07",
       "3.15e+06",
       {2, 4, 8},
       "2.91e+06"},
      {"mlp", {kGptTokens, 1'536, 6'144}, 16, "1.77e+07", "3.77e+08", "9.44e+07", "1.45e+07", {8, 1, 2}, "1.06e+07"},
      {"mlp", {kGptTokens, 1'536, 6'144}, 64, "1.86e+07", "3.96e+08", "9.91e+07", "9.14e+06", {16, 1, 4}, "8.99e+06"},
      {"mlp", {kGptTokens, 3'072, 12'288}, 64, "7.43e+07", "7.93e+08", "1.98e+08", "2.71e+07", {16, 1, 4}, "2.63e+07"},
  };
  for (const Row& row : rows) {
    INFO(row.name << " on " << row.ranks << " ranks");
    CHECK(digits(elements_sent(row.layer, data_parallel(row.ranks))) == row.data_parallel);
    CHECK(digits(elements_sent(row.layer, row_parallel(row.ranks))) == row.row);
    CHECK(digits(elements_sent(row.layer, column_parallel(row.ranks))) == row.column);
    const LinearGrid best = best_grid(row.layer, row.ranks);
    CHECK(best == row.grid);
    CHECK(digits(elements_sent(row.layer, best)) == row.best);
    const double bound = least_elements_sent(row.layer, row.ranks);
    if (std::string(row.bound).empty())
      CHECK(bound < 0.0);
    else
      CHECK(digits(bound) == row.bound);
  }
}

TEST_CASE("no grid sends less than the bound, and a cube meets it", "[sbp]") {
  // m = k = n = 64 on 2 x 2 x 2: V = 2/8 x 3 x 64^2 = 3072; bound 6 (64^3/8)^(2/3) - 2/8 x 3 x 64^2 = 6144 - 3072.
  const LinearLayer cube{64, 64, 64};
  CHECK(best_grid(cube, 8) == LinearGrid{2, 2, 2});
  CHECK(elements_sent(cube, {2, 2, 2}) == 3'072.0);
  CHECK_THAT(least_elements_sent(cube, 8), WithinRel(3'072.0, 1e-12));
  for (const LinearLayer layer : {LinearLayer{96, 4'096, 1'024}, LinearLayer{20'000, 128, 130}, cube})
    for (int ranks = 1; ranks <= 64; ++ranks)
      for (const LinearGrid& grid : grids_of(ranks))
        CHECK(elements_sent(layer, grid) >= least_elements_sent(layer, ranks) * (1.0 - 1e-12));
}

TEST_CASE("all grids of a number of ranks", "[sbp]") {
  // 2^q ranks: C(q+2, 2) grids, 15 for 16 and 28 for 64; a prime: 3.
  CHECK(grids_of(16).size() == 15);
  CHECK(grids_of(64).size() == 28);
  CHECK(grids_of(7) == std::vector<LinearGrid>{{1, 1, 7}, {1, 7, 1}, {7, 1, 1}});
  // Seven ranks fit along n = 8 only.
  CHECK(best_grid({2, 3, 8}, 7) == column_parallel(7));
  CHECK_THROWS_WITH(best_grid({2, 3, 4}, 7), "no grid of 7 ranks fits a linear layer with m = 2, k = 3, n = 4");
}

TEST_CASE("layouts of a linear layer's tensors", "[sbp]") {
  // The three products by hand, one mesh axis each for m, k and n.
  const DeviceMesh mesh({{"a", 2}, {"b", 2}, {"c", 2}});
  const LinearSplits splits{LinearSplit::M, LinearSplit::K, LinearSplit::N};
  const LinearLayouts layouts = linear_layouts({8, 8, 8}, mesh, splits);
  CHECK(text_of(splits) == "mkn");
  CHECK(text_of(layouts.input) == "(S(0),S(1),B)");
  CHECK(text_of(layouts.weight) == "(B,S(0),S(1))");
  CHECK(text_of(layouts.output) == "(S(0),P,S(1))");
  CHECK(text_of(layouts.output_grad) == "(S(0),B,S(1))");
  CHECK(text_of(layouts.input_grad) == "(S(0),S(1),P)");
  CHECK(text_of(layouts.weight_grad) == "(P,S(0),S(1))");
}

TEST_CASE("boxing of a linear layer adds up to the closed form on every grid of 2 to 64 ranks", "[sbp]") {
  const LinearLayer layer{192, 320, 448};
  int grids = 0;
  for (int ranks = 2; ranks <= 64; ++ranks) {
    for (const LinearGrid& grid : grids_of(ranks)) {
      const BoxingMesh mesh = by_bytes(DeviceMesh({{"m", grid.m}, {"k", grid.k}, {"n", grid.n}}));
      const double bytes = bytes_of(linear_boxing(layer, {LinearSplit::M, LinearSplit::K, LinearSplit::N}, mesh));
      INFO("grid " << grid.m << " x " << grid.k << " x " << grid.n);
      CHECK_THAT(bytes, WithinRel(4.0 * elements_sent(layer, grid), 1e-12));
      ++grids;
    }
  }
  // Triples of numbers whose product is from 2 to 64: 795.
  CHECK(grids == 795);
}

TEST_CASE("splits along mesh axes of two ranks send what their grid does", "[sbp]") {
  // 3^4 ways to give four axes to m, k and n; several axes of one kind box together or one after another.
  const LinearLayer layer{192, 320, 448};
  const BoxingMesh mesh = by_bytes(DeviceMesh({{"a", 2}, {"b", 2}, {"c", 2}, {"d", 2}}));
  for (int code = 0; code < 81; ++code) {
    LinearSplits splits;
    for (int a = 0, rest = code; a < 4; ++a, rest /= 3) splits.push_back(static_cast<LinearSplit>(rest % 3));
    INFO(text_of(splits));
    CHECK_THAT(bytes_of(linear_boxing(layer, splits, mesh)),
               WithinRel(4.0 * elements_sent(layer, grid_of(splits, mesh.mesh)), 1e-12));
  }
}
