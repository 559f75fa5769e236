// Searches of chains: exact ones against each other, the others against them.
#include "strategies/sbp/chain_search.hpp"

#include "base/error.hpp"
#include "base/random.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/chain_gap.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

struct Size {
  std::size_t layers;
  std::size_t candidates;
};

/// Costs uniform in 0 ... 999, whole: sums are exact.
ChainCosts random_chain(Size size, Random& random) {
  const auto cost = [&] { return static_cast<double>(random.below(1'000)); };
  ChainCosts out;
  for (std::size_t l = 0; l < size.layers; ++l) {
    out.nodes.emplace_back();
    for (std::size_t c = 0; c < size.candidates; ++c) out.nodes.back().push_back(cost());
  }
  for (std::size_t l = 0; l + 1 < size.layers; ++l) {
    out.edges.emplace_back(size.candidates);
    for (auto& row : out.edges.back())
      for (std::size_t c = 0; c < size.candidates; ++c) row.push_back(cost());
  }
  return out;
}

/// Two layers that would have to change together: (0,0) costs 2, (1,1) nothing, what lies between 10.
ChainCosts trap() {
  return {.nodes = {{1, 0}, {1, 0}}, .edges = {{{0, 10}, {10, 0}}}};
}

}  // namespace

TEST_CASE("the cost of a choice by hand", "[sbp]") {
  const ChainCosts costs{.nodes = {{1, 2}, {4, 8, 16}}, .edges = {{{10, 20, 30}, {40, 50, 60}}}};
  // Layer 0 takes 1, layer 1 takes 2: 2 + 60 + 16.
  CHECK(chain_cost(costs, {1, 2}) == 78.0);
  // Least: (0,0) 1 + 10 + 4. Six pairs are looked at.
  const ChainResult best = chain_optimum(costs);
  CHECK(best.choice == ChainChoice{0, 0});
  CHECK(best.cost == 15.0);
  CHECK(best.evaluated == 6);
  CHECK(chain_exhaustive(costs).evaluated == 6);
}

TEST_CASE("the dynamic program and looking at all choices agree exactly", "[sbp]") {
  Random random(11);
  for (int i = 0; i < 300; ++i) {
    const ChainCosts costs = random_chain({1 + random.below(5), 1 + random.below(5)}, random);
    const ChainResult all = chain_exhaustive(costs);
    const ChainResult best = chain_optimum(costs);
    CHECK(best.cost == all.cost);
    CHECK(chain_cost(costs, best.choice) == best.cost);
  }
}

TEST_CASE("coordinate descent stays where two neighbors would have to change together", "[sbp]") {
  const ChainResult stuck = coordinate_descent(trap());
  CHECK(stuck.choice == ChainChoice{0, 0});
  CHECK(stuck.cost == 2.0);
  // One sweep over two layers of two candidates changes nothing.
  CHECK(stuck.evaluated == 4);
  CHECK(coordinate_descent(trap(), {.start = {1, 1}}).cost == 0.0);
  // Tied they do change together, and restarts find it, too.
  CHECK(coordinate_descent(trap(), {.ties = {7, 7}}).cost == 0.0);
  CHECK(coordinate_descent(trap(), {.restarts = 10, .seed = 1}).cost == 0.0);
  CHECK(chain_annealing(trap(), {.trials = 2'000, .first_temperature = 10.0}).cost == 0.0);
}

TEST_CASE("tied layers take one candidate, then each its own", "[sbp]") {
  // Layers 0 and 2 are tied. Together 0 costs 3 + 3, candidate 1 costs 5 + 0: 5. Apart: layer 0 takes 0, layer 2
  // takes 1.
  const std::vector<std::vector<double>> free{{0, 0}, {0, 0}};
  const ChainCosts costs{.nodes = {{3, 5}, {0, 0}, {3, 0}}, .edges = {free, free}};
  const ChainResult result = coordinate_descent(costs, {.ties = {0, 1, 0}});
  CHECK(result.choice == ChainChoice{0, 0, 1});
  // Tied: two sweeps of two coordinates of two candidates (the first changes); untied two of three: 8 + 12.
  CHECK(result.evaluated == 20);
}

TEST_CASE("searches of random chains against the optimum", "[sbp]") {
  Random random(5);
  GapTable table;
  for (int i = 0; i < 500; ++i) {
    const std::size_t layers = 2 + random.below(11);
    const ChainCosts costs = random_chain({layers, 2 + random.below(14)}, random);
    const ChainResult descent = coordinate_descent(costs);
    CHECK(descent.cost <= chain_cost(costs, ChainChoice(layers, 0)));
    CHECK(descent.cost == chain_cost(costs, descent.choice));
    table.add(costs);
  }
  check_gaps(table);
  // Costs without any structure have many local optima.
  CHECK(table.descent(100).share_equal() > table.descent(0).share_equal());
  WARN("random chains:" << table.text());
}

TEST_CASE("searches are the same for the same seed", "[sbp]") {
  Random random(9);
  const ChainCosts costs = random_chain({12, 9}, random);
  const auto descend = [&](std::uint64_t seed) { return coordinate_descent(costs, {.restarts = 3, .seed = seed}); };
  CHECK(descend(1).choice == descend(1).choice);
  CHECK(descend(1).evaluated == descend(1).evaluated);
  CHECK(chain_annealing(costs, {.seed = 4}).choice == chain_annealing(costs, {.seed = 4}).choice);
}

TEST_CASE("what is wrong with a chain is said", "[sbp]") {
  const std::vector<std::vector<double>> edges{{1}, {1}};
  CHECK_THROWS_WITH(chain_optimum({}), "a chain without layers: expected at least one");
  CHECK_THROWS_WITH(chain_optimum({.nodes = {{1}, {1}}}), "a chain of 2 layers has 0 tables of edges: expected 1");
  CHECK_THROWS_WITH(chain_optimum({.nodes = {{}}}), "layer 0 of a chain has no candidate");
  CHECK_THROWS_WITH(chain_optimum({.nodes = {{0.0 / 0.0}}}), "a cost of layer 0 is not a finite number");
  CHECK_THROWS_WITH(chain_optimum({.nodes = {{1}, {1}}, .edges = {edges}}),
                    "edges from layer 0 of a chain: expected 1 x 1 finite costs");
  CHECK_THROWS_WITH(chain_cost(trap(), {0}), "a choice for 1 layers of a chain of 2: expected as many");
  CHECK_THROWS_WITH(coordinate_descent(trap(), {.start = {0, 2}}), "candidate 2 of layer 1: expected one of 0 to 1");
  CHECK_THROWS_WITH(coordinate_descent(trap(), {.ties = {0}}), "ties of 1 layers for a chain of 2: expected as many");
  CHECK_THROWS_WITH(coordinate_descent({.nodes = {{1, 2}, {1}}, .edges = {edges}}, {.ties = {0, 0}}),
                    "tied layers 0 and 1 have 2 and 1 candidates: expected as many");
  CHECK_THROWS_WITH(coordinate_descent(trap(), {.restarts = -1}), "-1 restarts of a descent: expected 0 or more");
  CHECK_THROWS_WITH(chain_annealing(trap(), {.first_temperature = 0.0}),
                    "annealing from temperature 0 to 0.0001: expected both above 0");
  Random random(1);
  CHECK_THROWS_WITH(chain_exhaustive(random_chain({9, 8}, random)),
                    "a chain has 1.34e+08 choices: expected at most 1e+07 to look at all of them");
}
