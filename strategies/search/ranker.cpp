#include "strategies/search/ranker.hpp"

#include <cmath>

#include "base/error.hpp"
#include "strategies/search/example_pairs.hpp"
#include "strategies/search/scores.hpp"

namespace simsync {
namespace {

/// The logarithm of the ratio of steps; 0: the pair is not to be compared.
double order_of(const Example& a, const Example& b) {
  if (a.domain != b.domain) return 0.0;
  const double ratio = std::log(a.step / b.step);
  return std::abs(ratio) < kNearTie ? 0.0 : ratio;
}

}  // namespace

double pairwise_accuracy(const std::vector<Example>& examples, const std::vector<double>& scores) {
  SIMSYNC_ASSERT(examples.size() == scores.size());
  double right = 0.0;
  double pairs = 0.0;
  for (std::size_t i = 0; i < examples.size(); ++i) {
    for (std::size_t k = i + 1; k < examples.size(); ++k) {
      const double ratio = order_of(examples[i], examples[k]);
      if (ratio == 0.0) continue;
      const double difference = scores[i] - scores[k];
      pairs += 1.0;
      right += difference == 0.0 ? 0.5 : (difference > 0.0) == (ratio > 0.0) ? 1.0 : 0.0;
    }
  }
  return pairs > 0.0 ? right / pairs : 1.0;
}

double pairwise_accuracy(const std::vector<Example>& examples, const Ranker& ranker) {
  return pairwise_accuracy(examples, detail::scores_of(examples, ranker));
}

namespace detail {

double slower_by(const Example& a, const Example& b) {
  const double ratio = std::log(a.step / b.step);
  return std::abs(ratio) >= kNearTie ? ratio : a.shards - b.shards;
}

std::vector<Pair> pairs_of(const std::vector<Example>& examples, std::size_t most) {
  std::vector<Pair> all;
  for (std::size_t i = 0; i < examples.size(); ++i) {
    for (std::size_t k = i + 1; k < examples.size(); ++k) {
      if (examples[i].domain != examples[k].domain) continue;
      const double slower = slower_by(examples[i], examples[k]);
      if (slower > 0.0) all.emplace_back(i, k);
      if (slower < 0.0) all.emplace_back(k, i);
    }
  }
  if (all.size() <= most) return all;
  std::vector<Pair> out;
  for (std::size_t i = 0; i < most; ++i) out.push_back(all[i * all.size() / most]);
  return out;
}

}  // namespace detail
bool has_pairs(const std::vector<Example>& examples) {
  for (const Example& example : examples)
    for (const Example& other : examples)
      if (order_of(example, other) != 0.0) return true;
  return false;
}

}  // namespace simsync
