#include "strategies/search/ranker.hpp"

#include <cmath>

#include "base/error.hpp"

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

}  // namespace simsync
