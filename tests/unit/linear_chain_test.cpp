// Chains of linear layers with the boxing between them.
#include "strategies/sbp/linear_chain.hpp"

#include "base/error.hpp"
#include "base/random.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/chain_gap.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

/// Nodes of `per_node` ranks: 1 us and 100 GB/s a rank within, 5 us and 12.5 GB/s a node between.
BoxingMesh on_nodes(DeviceMesh mesh, int per_node, BoxingMeasure measure = BoxingMeasure::Time) {
  const NodeLinks nodes{.ranks_per_node = per_node,
                        .within = {Seconds{1e-6}, BytesPerSecond{100e9}},
                        .between = {Seconds{5e-6}, BytesPerSecond{12.5e9}}};
  auto links = links_of(mesh, nodes);
  return {.mesh = std::move(mesh), .links = std::move(links), .options = {.measure = measure}};
}

/// Widths from 64 to 8192 with a factor of two to the power of a whole number between.
std::vector<LinearLayer> random_layers(std::size_t count, Random& random) {
  const auto width = [&] { return std::int64_t{64} << random.below(8); };
  const std::int64_t samples = width();
  std::vector<LinearLayer> out;
  for (std::int64_t k = width(); out.size() < count; k = out.back().n)
    out.push_back({.m = samples, .k = k, .n = width()});
  return out;
}

int find(const LinearChain& chain, std::size_t layer, const std::string& splits) {
  const auto& list = chain.candidates[layer];
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const LinearSplits& s) { return text_of(s) == splits; });
  REQUIRE(found != list.end());
  return static_cast<int>(found - list.begin());
}

}  // namespace

TEST_CASE("a chain of one layer costs the closed form, and its best is the best grid", "[sbp]") {
  const LinearLayer layer{512, 25'088, 4'096};  // fc6 of VGG16 on 16 ranks
  const BoxingMesh mesh =
      on_nodes(DeviceMesh({{"a", 2}, {"b", 2}, {"c", 2}, {"d", 2}}), 4, BoxingMeasure::BytesPerRank);
  const LinearChain chain = linear_chain({layer}, mesh);
  REQUIRE(chain.candidates.front().size() == 81);
  CHECK(text_of(chain.candidates.front().front()) == "mmmm");
  for (std::size_t c = 0; c < 81; ++c) {
    const LinearGrid grid = grid_of(chain.candidates.front()[c], mesh.mesh);
    CHECK_THAT(chain.costs.nodes.front()[c], WithinRel(4.0 * elements_sent(layer, grid), 1e-12));
  }
  const ChainResult best = chain_optimum(chain.costs);
  CHECK(grid_of(chain.candidates.front()[static_cast<std::size_t>(best.choice.front())], mesh.mesh) ==
        best_grid(layer, 16));
}

TEST_CASE("Megatron's pair of layers by hand", "[sbp]") {
  // Four ranks, m = 64, 128 -> 512 -> 128, in bytes of a rank. Column then row: nothing lies between the layers that
  // would have to be sent. Of each pass one all-reduce of m x 128 floats, 32768 bytes: 2 x 3/4 x 32768 = 49152.
  const LinearChain chain =
      linear_chain({{64, 128, 512}, {64, 512, 128}}, on_nodes(DeviceMesh({{"tp", 4}}), 4, BoxingMeasure::BytesPerRank));
  CHECK(chain_cost(chain.costs, {find(chain, 0, "n"), find(chain, 1, "k")}) == 2.0 * 49'152.0);
  // Data parallel: gradients of 2 x 128 x 512 floats, 2 x 3/4 x 524288.
  CHECK(chain_cost(chain.costs, {find(chain, 0, "m"), find(chain, 1, "m")}) == 786'432.0);
  // Row then column: the sum of X W0, m x 512 floats (131072 bytes), all-reduced: 196608. Likewise the gradient of
  // what lies between. The ends: X and Y are split, and neither their gradients nor they are addends.
  CHECK(chain_cost(chain.costs, {find(chain, 0, "k"), find(chain, 1, "n")}) == 2.0 * 196'608.0);
  // Row then data parallel: the sum is reduce-scattered to samples (98304), the gradient of it gathered (98304); the
  // second layer's gradient is 262144 bytes: 393216.
  CHECK(chain_cost(chain.costs, {find(chain, 0, "k"), find(chain, 1, "m")}) == 2.0 * 98'304.0 + 393'216.0);
}

TEST_CASE("searches of chains of linear layers against the optimum", "[sbp]") {
  for (const DeviceMesh& mesh :
       {DeviceMesh({{"outer", 2}, {"inner", 4}}), DeviceMesh({{"a", 2}, {"b", 2}, {"c", 2}})}) {
    const BoxingMesh boxing = on_nodes(mesh, 4);
    Random random(17);
    GapTable table;
    for (int i = 0; i < 500; ++i) table.add(linear_chain(random_layers(2 + random.below(9), random), boxing).costs);
    check_gaps(table);
    CHECK(table.descent(100).share_equal() > table.descent(0).share_equal());
    WARN("linear layers on " << mesh.axis_count() << " mesh axes:" << table.text());
  }
}

TEST_CASE("a small chain of linear layers is searched to its optimum", "[sbp]") {
  Random random(23);
  for (int i = 0; i < 20; ++i) {
    const LinearChain chain =
        linear_chain(random_layers(3, random), on_nodes(DeviceMesh({{"outer", 2}, {"inner", 4}}), 4));
    CHECK_THAT(chain_optimum(chain.costs).cost, WithinRel(chain_exhaustive(chain.costs).cost, 1e-12));
  }
}

TEST_CASE("tied layers of a Transformer's blocks", "[sbp]") {
  // Twelve blocks of 1536 -> 6144 -> 1536 on 4096 tokens, two nodes of 8. Layers are tied by their place in the block.
  std::vector<LinearLayer> layers;
  std::vector<int> ties;
  for (int block = 0; block < 12; ++block) {
    layers.push_back({.m = 4'096, .k = 1'536, .n = 6'144});
    layers.push_back({.m = 4'096, .k = 6'144, .n = 1'536});
    ties.insert(ties.end(), {0, 1});
  }
  const LinearChain chain = linear_chain(layers, on_nodes(DeviceMesh({{"outer", 2}, {"inner", 8}}), 8));
  const ChainResult best = chain_optimum(chain.costs);
  // Between nodes each rank sends an eighth of a block's sums, forward and backward 2 x 6.3e6 elements, or of its
  // weights' gradients, 2 x 9.4e6. So Megatron's pair lies across the nodes, and data parallelism within.
  for (std::size_t l = 0; l < layers.size(); ++l)
    CHECK(text_of(chain.candidates[l][static_cast<std::size_t>(best.choice[l])]) == (l % 2 == 0 ? "nm" : "km"));
  const ChainResult tied = coordinate_descent(chain.costs, {.restarts = 20, .ties = ties});
  const ChainResult untied = coordinate_descent(chain.costs, {.restarts = 20});
  CHECK_THAT(tied.cost, WithinRel(best.cost, 1e-12));
  CHECK(untied.cost >= best.cost * (1.0 - 1e-12));
  WARN("24 layers: data parallel " << chain_cost(chain.costs, ChainChoice(24, 0)) << " s, optimum " << best.cost
                                   << " s; 20 restarts, tied " << tied.cost << " s, untied " << untied.cost << " s");
}

TEST_CASE("what is wrong with a chain of linear layers is said", "[sbp]") {
  const BoxingMesh mesh = on_nodes(DeviceMesh({{"tp", 4}}), 4);
  CHECK_THROWS_WITH(linear_chain({}, mesh), "a chain without layers: expected at least one");
  CHECK_THROWS_WITH(linear_chain({{8, 8, 8}, {8, 9, 8}}, mesh),
                    "linear layer 0 gives [8, 8] and the next one takes [8, 9]: expected the same");
  CHECK_THROWS_WITH(linear_chain({{2, 3, 3}}, mesh),
                    "no split over 4 ranks fits a linear layer with m = 2, k = 3, n = 3");
  // Data parallelism does not fit: k and n are left.
  CHECK(text_of(linear_chain({{2, 8, 8}}, mesh).candidates.front().front()) == "k");
}
