// Blocks of a model over the chunks of a pipeline: frameworks' rules by hand, the best partition by enumeration.
#include "strategies/pipeline/stage_blocks.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <string>

#include "base/error.hpp"
#include "base/random.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

BlockCosts equal_costs(int blocks, double before = 0.0, double after = 0.0) {
  return {std::vector<double>(static_cast<std::size_t>(blocks), 1.0), before, after};
}

/// The most expensive chunk, and the sum of squares.
struct Value {
  double most = std::numeric_limits<double>::infinity();
  double squares = std::numeric_limits<double>::infinity();
};

Value value_of(const BlockCounts& counts, const BlockCosts& costs) {
  const std::vector<double> sums = chunk_costs(counts, costs);
  return {*std::max_element(sums.begin(), sums.end()), std::inner_product(sums.begin(), sums.end(), sums.begin(), 0.0)};
}

bool is_legal(const BlockCounts& counts, const BlockCosts& costs) {
  try {
    check_blocks(counts, costs, static_cast<int>(counts.size()));
  } catch (const PlanError&) {
    return false;
  }
  return true;
}

/// The best of all ways to write the number of blocks as a sum of `chunks` numbers.
Value best_of_all(const BlockCosts& costs, int chunks) {
  Value best;
  BlockCounts counts(static_cast<std::size_t>(chunks), 0);
  const std::function<void(std::size_t, int)> place = [&](std::size_t chunk, int left) {
    if (chunk + 1 == counts.size()) {
      counts[chunk] = left;
      if (!is_legal(counts, costs)) return;
      const Value value = value_of(counts, costs);
      if (value.most < best.most || (value.most == best.most && value.squares < best.squares)) best = value;
      return;
    }
    for (int count = 0; count <= left; ++count) {
      counts[chunk] = count;
      place(chunk + 1, left - count);
    }
  };
  place(0, static_cast<int>(costs.blocks.size()));
  return best;
}

}  // namespace

TEST_CASE("Megatron-LM divides blocks evenly or not at all", "[pipeline]") {
  CHECK(even_blocks(32, 8) == BlockCounts(8, 4));
  CHECK_THROWS_WITH(
      even_blocks(30, 4),
      "30 blocks do not divide evenly into 4 model chunks: expected 28 or 32 blocks, or a number of blocks "
      "for each chunk");
  CHECK_THROWS_WITH(even_blocks(3, 4),
                    "3 blocks do not divide evenly into 4 model chunks: expected 4 blocks, or a number of blocks for "
                    "each chunk");
  // Llama 3.1 405B has 126 blocks so that the embedding and the head count as one each: 128 over 16 stages.
  const BlockCounts llama = even_blocks(126, 16, {1, 1});
  CHECK(llama.front() == 7);
  CHECK(llama.back() == 7);
  CHECK(std::all_of(llama.begin() + 1, llama.end() - 1, [](int count) { return count == 8; }));
  CHECK_THROWS_WITH(even_blocks(127, 16, {1, 1}),
                    "127 blocks (and 1 for the embedding, 1 for the head) do not divide evenly into 16 model chunks: "
                    "expected 126 or 142 blocks, or a number of blocks for each chunk");
  // 4 + 3 + 1 = 8, 2 for each chunk: the embedding alone is more.
  CHECK_THROWS_WITH(even_blocks(4, 4, {3, 1}),
                    "an embedding or a head that weighs 3 blocks does not fit into a model chunk of 2: expected fewer "
                    "model chunks than 4, or a smaller weight");
}

TEST_CASE("torchtitan gives the first chunks what is left over", "[pipeline]") {
  // 10 = 4 x 2 + 2.
  CHECK(spread_blocks(10, 4) == BlockCounts{3, 3, 2, 2});
  // 32 + 1 + 1 = 34 = 8 x 4 + 2: 5, 5, 4 ..., less 1 at both ends.
  CHECK(spread_blocks(32, 8, {1, 1}) == BlockCounts{4, 5, 4, 4, 4, 4, 4, 3});
  // The example of its documentation, 2 stages and 3 layers with weights of 2: 7 = 4 + 3, so 2 and 1.
  CHECK(spread_blocks(3, 2, {2, 2}) == BlockCounts{2, 1});
  // The head alone in the last chunk.
  CHECK(spread_blocks(3, 4, {0, 1}) == BlockCounts{1, 1, 1, 0});
  CHECK(spread_blocks(7, 1, {1, 1}) == BlockCounts{7});
  CHECK_THROWS_WITH(
      spread_blocks(3, 8, {1, 1}),
      "3 blocks (and 1 for the embedding, 1 for the head) are too few for 8 model chunks: expected 5 model "
      "chunks at most");
  CHECK_THROWS_WITH(spread_blocks(6, 4, {0, 3}),
                    "an embedding or a head that weighs 3 blocks does not fit into a model chunk of 2: expected fewer "
                    "model chunks than 4, or a smaller weight");
  CHECK_THROWS_WITH(spread_blocks(6, 4, {-1, 3}), "the embedding weighs -1 blocks and the head 3: expected 0 or more");
}

TEST_CASE("nanotron ends a chunk with the block that takes the sum beyond its share", "[pipeline]") {
  // Llama 3 8B over 8 stages, by nanotron's costs: a block 4 x 32 x 128 x 4096 + 3 x 14336 x 4096 = 243,269,632, the
  // head 128256 x 4096 = 525,336,576. In all 8,309,964,800, a share is 1,038,745,600 = 4.27 blocks: the first chunks
  // end with block 5, 9 (of 8.54), 13 (12.81), 18 (17.08), 22 (21.35), 26 (25.62) and 30 (29.89). A walk-through of
  // nanotron prints the same: 5, 4, 4, 5, 4, 4, 4 and 2 decoder layers.
  const BlockCosts costs{std::vector<double>(32, 243'269'632.0), 0.0, 525'336'576.0};
  CHECK(threshold_blocks(costs, 8) == BlockCounts{5, 4, 4, 5, 4, 4, 4, 2});
  CHECK(threshold_blocks(costs, 1) == BlockCounts{32});
  // Equal blocks: 2 of 4 are the share and not beyond it, so that 3 and 1 come out.
  CHECK(threshold_blocks(equal_costs(4), 2) == BlockCounts{3, 1});
  // An embedding beyond the share stays alone.
  CHECK(threshold_blocks(equal_costs(2, 4.0), 2) == BlockCounts{0, 2});
  // 1, 2 against shares of 1 and 2: nothing ever goes beyond the first share but the last block.
  CHECK_THROWS_WITH(threshold_blocks(equal_costs(2), 2),
                    "ending model chunks where the sum of costs passes an even share leaves the last of 2 model chunks "
                    "empty: expected fewer model chunks, or a balanced partition");
}

TEST_CASE("the balanced partition by hand", "[pipeline]") {
  // 9 = 3 + 2 + 2 + 2 has the least squares of all with 3 at most.
  CHECK(balanced_blocks(equal_costs(9), 4) == BlockCounts{3, 2, 2, 2});
  CHECK(balanced_blocks(equal_costs(32), 8) == BlockCounts(8, 4));
  // Llama 3 8B, the head is 2.16 blocks: 30 blocks over 7 chunks and 2 at the end, 5 at most, 4.16 at the end.
  const BlockCounts llama = balanced_blocks(equal_costs(32, 0.0, 2.1595), 8);
  CHECK(llama == BlockCounts{5, 5, 4, 4, 4, 4, 4, 2});
  // A head of 4 blocks stays alone where that is best.
  CHECK(balanced_blocks(equal_costs(8, 0.0, 4.0), 3) == BlockCounts{4, 4, 0});
  CHECK(balanced_blocks({{5, 1, 1, 1, 1, 1}, 0, 0}, 3) == BlockCounts{1, 3, 2});
  // Sums of 0.1 differ in their last bits; 7 = 3 + 2 + 2 all the same.
  CHECK(balanced_blocks({std::vector<double>(7, 0.1), 0, 0}, 3) == BlockCounts{3, 2, 2});
  CHECK_THROWS_WITH(balanced_blocks(equal_costs(3), 5),
                    "3 blocks are too few for 5 model chunks: expected 3 model chunks at most");
  CHECK_THROWS_WITH(balanced_blocks(equal_costs(3, 1.0, 1.0), 6),
                    "3 blocks are too few for 6 model chunks: expected 5 model chunks at most");
  CHECK_THROWS_WITH(balanced_blocks(equal_costs(3), 0), "0 model chunks: expected 1 or more");
  CHECK_THROWS_WITH(balanced_blocks({}, 1), "a model with 0 blocks: expected 1 or more");
}

TEST_CASE("no partition is better than the balanced one", "[pipeline]") {
  const std::uint64_t seed = 20200617;
  INFO("seed " << seed);
  Random random(seed);
  int compared = 0;
  for (int trial = 0; trial < 600; ++trial) {
    // Whole costs, many of them alike, so that sums are exact and ties are common.
    const auto draw = [&](std::uint64_t below) { return static_cast<double>(random.below(below)); };
    BlockCosts costs;
    for (auto left = 1 + random.below(10); left > 0; --left) costs.blocks.push_back(draw(6));
    if (random.below(2) == 1) costs.before = draw(9);
    if (random.below(2) == 1) costs.after = draw(9);
    const int blocks = static_cast<int>(costs.blocks.size());
    for (int chunks = 1; chunks <= std::min(blocks, 5); ++chunks) {
      const BlockCounts found = balanced_blocks(costs, chunks);
      INFO("trial " << trial << ", " << blocks << " blocks, " << chunks << " chunks");
      REQUIRE(is_legal(found, costs));
      const Value best = best_of_all(costs, chunks);
      REQUIRE(value_of(found, costs).most == best.most);
      REQUIRE(value_of(found, costs).squares == best.squares);
      ++compared;
    }
  }
  CHECK(compared > 1500);
}

TEST_CASE("numbers of blocks that a user gives", "[pipeline]") {
  CHECK_NOTHROW(check_blocks({2, 3, 1}, equal_costs(6), 3));
  CHECK_THROWS_WITH(check_blocks({2, 4}, equal_costs(6), 3),
                    "numbers of blocks for 2 model chunks: expected 3, as many as stages times chunks");
  CHECK_THROWS_WITH(check_blocks({2, 3, 2}, equal_costs(6), 3),
                    "the model chunks have 7 blocks in all: expected 6, as the model has");
  CHECK_THROWS_WITH(check_blocks({3, 3, 0}, equal_costs(6), 3), "0 blocks in model chunk 2: expected 1 or more");
  CHECK_NOTHROW(check_blocks({3, 3, 0}, equal_costs(6, 0.0, 1.0), 3));
  CHECK_THROWS_WITH(check_blocks({-1, 7, 0}, equal_costs(6, 1.0, 1.0), 3),
                    "-1 blocks in model chunk 0: expected 0 or more");
}

TEST_CASE("a stage costs what its chunks cost", "[pipeline]") {
  // Chunks 0 and 2 lie on stage 0, 1 and 3 on stage 1: 10 + 1 + 2, 4 + 5, and so on.
  const std::vector<double> chunks = chunk_costs({2, 1, 1, 1}, {{1, 2, 4, 5, 6}, 10, 20});
  CHECK(chunks == std::vector<double>{13, 4, 5, 26});
  CHECK(stage_costs(chunks, 2) == std::vector<double>{18, 30});
  CHECK_THROWS_AS(stage_costs(chunks, 3), std::logic_error);
}
