#include "strategies/search/ranker.hpp"

#include <cmath>

#include "base/error.hpp"
#include "strategies/search/example_pairs.hpp"
#include "strategies/search/scores.hpp"

namespace simsync {

double pairwise_accuracy(const std::vector<Example>& examples, const std::vector<double>& scores) {
  SIMSYNC_ASSERT(examples.size() == scores.size());
  double right = 0.0;
  double pairs = 0.0;
  for (std::size_t i = 0; i < examples.size(); ++i) {
    for (std::size_t k = i + 1; k < examples.size(); ++k) {
      if (examples[i].domain != examples[k].domain) continue;
      const double ratio = std::log(examples[i].step / examples[k].step);
      if (std::abs(ratio) < kNearTie) continue;
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
}  // namespace simsync
