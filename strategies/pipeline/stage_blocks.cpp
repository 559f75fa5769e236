#include "strategies/pipeline/stage_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <string>

#include "base/error.hpp"

namespace simsync {
namespace {

/// Sums of the same costs in another order differ by less.
constexpr double kRounding = 1e-12;

void expect_numbers(int blocks, int model_chunks) {
  if (blocks < 1) throw PlanError(fmt::format("a model with {} blocks: expected 1 or more", blocks));
  if (model_chunks < 1) throw PlanError(fmt::format("{} model chunks: expected 1 or more", model_chunks));
}

void expect_weights(const BlockWeights& weights) {
  if (weights.before < 0 || weights.after < 0)
    throw PlanError(fmt::format("the embedding weighs {} blocks and the head {}: expected 0 or more", weights.before,
                                weights.after));
}

void expect_costs(const BlockCosts& costs) {
  const auto is_cost = [](double cost) { return std::isfinite(cost) && cost >= 0.0; };
  SIMSYNC_ASSERT(is_cost(costs.before) && is_cost(costs.after));
  SIMSYNC_ASSERT(std::all_of(costs.blocks.begin(), costs.blocks.end(), is_cost));
}

/// Whether model chunk `chunk` needs a block.
bool needs_block(const BlockCosts& costs, int chunk, int model_chunks) {
  if (chunk == 0 && costs.before > 0.0) return false;
  return chunk != model_chunks - 1 || costs.after <= 0.0;
}

/// " (and 1 for the embedding, 2 for the head)", or nothing without weights.
std::string weights_text(const BlockWeights& weights) {
  if (weights.before == 0 && weights.after == 0) return "";
  return fmt::format(" (and {} for the embedding, {} for the head)", weights.before, weights.after);
}

/// `whole` dealt out evenly, one more for the first chunks, less what the embedding and the head weigh.
BlockCounts shares(int model_chunks, std::int64_t whole, const BlockWeights& weights) {
  const std::int64_t share = whole / model_chunks;
  if (const int most = std::max(weights.before, weights.after); most > share)
    throw PlanError(
        fmt::format("an embedding or a head that weighs {} blocks does not fit into a model chunk of {}: "
                    "expected fewer model chunks than {}, or a smaller weight",
                    most, share, model_chunks));
  BlockCounts counts(static_cast<std::size_t>(model_chunks), static_cast<int>(share));
  std::for_each_n(counts.begin(), whole % model_chunks, [](int& count) { ++count; });
  counts.front() -= weights.before;
  counts.back() -= weights.after;
  return counts;
}

/// Costs of runs of blocks.
class Runs {
public:
  Runs(const BlockCosts& costs, int model_chunks) : costs_(costs), last_(model_chunks - 1) {
    up_to_.push_back(0.0);
    for (const double cost : costs.blocks) up_to_.push_back(up_to_.back() + cost);
  }
  /// Of model chunk `chunk` with the blocks from `begin` to before `end`; infinite where it must not be empty.
  [[nodiscard]] double cost(int chunk, std::size_t begin, std::size_t end) const {
    if (begin == end && needs_block(costs_, chunk, last_ + 1)) return std::numeric_limits<double>::infinity();
    double sum = up_to_[end] - up_to_[begin];
    if (chunk == 0) sum += costs_.before;
    if (chunk == last_) sum += costs_.after;
    return sum;
  }
  [[nodiscard]] std::size_t blocks() const { return costs_.blocks.size(); }
  [[nodiscard]] int chunks() const { return last_ + 1; }

private:
  const BlockCosts& costs_;
  int last_;
  std::vector<double> up_to_;
};

struct Cut {
  double value = std::numeric_limits<double>::infinity();
  BlockCounts counts;
};

/// The partition with the least value, which `add` gathers from the value of the first chunks and the cost of the next.
Cut least(const Runs& runs, const std::function<double(double, double)>& add) {
  const std::size_t blocks = runs.blocks();
  // By number of chunks, then by number of blocks in them: the least value, and where the last chunk begins.
  std::vector<double> values(blocks + 1, std::numeric_limits<double>::infinity());
  values[0] = 0.0;
  std::vector<std::vector<std::size_t>> begins;
  for (int chunk = 0; chunk < runs.chunks(); ++chunk) {
    std::vector<double> next(blocks + 1, std::numeric_limits<double>::infinity());
    std::vector<std::size_t> begin_of(blocks + 1, 0);
    for (std::size_t end = 0; end <= blocks; ++end) {
      // From the shortest last chunk on, so that the first chunks get more where values are equal.
      for (std::size_t begin = end + 1; begin-- > 0;) {
        const double value = add(values[begin], runs.cost(chunk, begin, end));
        if (!(value < next[end] * (1.0 - kRounding))) continue;
        next[end] = value;
        begin_of[end] = begin;
      }
    }
    values = std::move(next);
    begins.push_back(std::move(begin_of));
  }
  Cut cut{values[blocks], BlockCounts(begins.size())};
  std::size_t end = blocks;
  for (std::size_t chunk = begins.size(); chunk-- > 0; end = begins[chunk][end])
    cut.counts[chunk] = static_cast<int>(end - begins[chunk][end]);
  return cut;
}

}  // namespace

BlockCounts even_blocks(int blocks, int model_chunks, const BlockWeights& weights) {
  expect_numbers(blocks, model_chunks);
  expect_weights(weights);
  const std::int64_t whole = std::int64_t{blocks} + weights.before + weights.after;
  if (const std::int64_t rest = whole % model_chunks; rest != 0) {
    const std::string fewer = blocks > rest ? fmt::format("{} or ", blocks - rest) : "";
    throw PlanError(
        fmt::format("{} blocks{} do not divide evenly into {} model chunks: expected {}{} blocks, or a "
                    "number of blocks for each chunk",
                    blocks, weights_text(weights), model_chunks, fewer, blocks - rest + model_chunks));
  }
  return shares(model_chunks, whole, weights);
}

BlockCounts spread_blocks(int blocks, int model_chunks, const BlockWeights& weights) {
  expect_numbers(blocks, model_chunks);
  expect_weights(weights);
  const std::int64_t whole = std::int64_t{blocks} + weights.before + weights.after;
  if (model_chunks > whole)
    throw PlanError(fmt::format("{} blocks{} are too few for {} model chunks: expected {} model chunks at most", blocks,
                                weights_text(weights), model_chunks, whole));
  return shares(model_chunks, whole, weights);
}

BlockCounts threshold_blocks(const BlockCosts& costs, int model_chunks) {
  expect_numbers(static_cast<int>(costs.blocks.size()), model_chunks);
  expect_costs(costs);
  // Summed in the model's order, as the last threshold must be.
  const double whole = std::accumulate(costs.blocks.begin(), costs.blocks.end(), costs.before) + costs.after;
  BlockCounts counts(static_cast<std::size_t>(model_chunks), 0);
  std::size_t chunk = 0;
  double sum = costs.before;
  const auto end_chunk = [&] {
    const double threshold = whole * (static_cast<double>(chunk + 1) / static_cast<double>(model_chunks));
    if (chunk + 1 < counts.size() && sum > threshold) ++chunk;
  };
  end_chunk();
  for (const double cost : costs.blocks) {
    ++counts[chunk];
    sum += cost;
    end_chunk();
  }
  if (chunk + 1 < counts.size() || (counts.back() == 0 && needs_block(costs, model_chunks - 1, model_chunks)))
    throw PlanError(
        fmt::format("ending model chunks where the sum of costs passes an even share leaves the last of {} "
                    "model chunks empty: expected fewer model chunks, or a balanced partition",
                    model_chunks));
  return counts;
}

BlockCounts balanced_blocks(const BlockCosts& costs, int model_chunks) {
  const int blocks = static_cast<int>(costs.blocks.size());
  expect_numbers(blocks, model_chunks);
  expect_costs(costs);
  int needed = 0;
  for (int chunk = 0; chunk < model_chunks; ++chunk) needed += needs_block(costs, chunk, model_chunks) ? 1 : 0;
  if (needed > blocks)
    throw PlanError(fmt::format("{} blocks are too few for {} model chunks: expected {} model chunks at most", blocks,
                                model_chunks, blocks + model_chunks - needed));
  const Runs runs(costs, model_chunks);
  const double dearest = least(runs, [](double first, double next) { return std::max(first, next); }).value;
  const double limit = dearest * (1.0 + kRounding);
  return least(runs,
               [limit](double first, double next) {
                 return next <= limit ? first + next * next : std::numeric_limits<double>::infinity();
               })
      .counts;
}

void check_blocks(const BlockCounts& counts, const BlockCosts& costs, int model_chunks) {
  const int blocks = static_cast<int>(costs.blocks.size());
  expect_numbers(blocks, model_chunks);
  if (counts.size() != static_cast<std::size_t>(model_chunks))
    throw PlanError(fmt::format("numbers of blocks for {} model chunks: expected {}, as many as stages times chunks",
                                counts.size(), model_chunks));
  for (int chunk = 0; chunk < model_chunks; ++chunk) {
    const int fewest = needs_block(costs, chunk, model_chunks) ? 1 : 0;
    if (const int count = counts[static_cast<std::size_t>(chunk)]; count < fewest)
      throw PlanError(fmt::format("{} blocks in model chunk {}: expected {} or more", count, chunk, fewest));
  }
  if (const auto sum = std::accumulate(counts.begin(), counts.end(), std::int64_t{0}); sum != blocks)
    throw PlanError(fmt::format("the model chunks have {} blocks in all: expected {}, as the model has", sum, blocks));
}

std::vector<double> chunk_costs(const BlockCounts& counts, const BlockCosts& costs) {
  check_blocks(counts, costs, static_cast<int>(counts.size()));
  std::vector<double> sums;
  auto next = costs.blocks.begin();
  for (const int count : counts) {
    sums.push_back(std::accumulate(next, next + count, 0.0));
    next += count;
  }
  sums.front() += costs.before;
  sums.back() += costs.after;
  return sums;
}

std::vector<double> stage_costs(const std::vector<double>& chunk_costs, int stages) {
  SIMSYNC_ASSERT(stages >= 1 && chunk_costs.size() % static_cast<std::size_t>(stages) == 0);
  std::vector<double> sums(static_cast<std::size_t>(stages), 0.0);
  for (std::size_t k = 0; k < chunk_costs.size(); ++k) sums[k % sums.size()] += chunk_costs[k];
  return sums;
}

}  // namespace simsync
