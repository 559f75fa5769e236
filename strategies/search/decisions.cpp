#include "strategies/search/decisions.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace simsync {

double RandomDecisions::share() {
  constexpr std::size_t kSteps = 8;
  return static_cast<double>(below(kSteps + 1)) / kSteps;
}

std::size_t RandomDecisions::softmax(const std::vector<double>& scores, double temperature) {
  SIMSYNC_ASSERT(!scores.empty() && temperature > 0.0);
  const double highest = *std::max_element(scores.begin(), scores.end());
  std::vector<double> sums;
  double sum = 0.0;
  for (const double score : scores) sums.push_back(sum += std::exp((score - highest) / temperature));
  const double drawn = random_.unit() * sum;
  const auto found = std::upper_bound(sums.begin(), sums.end(), drawn);
  return std::min(static_cast<std::size_t>(found - sums.begin()), scores.size() - 1);
}

std::size_t RandomDecisions::label(std::size_t /*used*/, std::size_t limit) {
  return below(limit);
}

std::size_t AllDecisions::below(std::size_t n) {
  SIMSYNC_ASSERT(n >= 1);
  if (at_ == decisions_.size()) decisions_.push_back({.chosen = 0, .count = n});
  Decision& now = decisions_[at_++];
  now.count = n;
  SIMSYNC_ASSERT(now.chosen < n);
  return now.chosen;
}

bool AllDecisions::coin(double share) {
  if (share <= 0.0 || share >= 1.0) return share >= 1.0;
  return below(2) == 1;
}

std::size_t AllDecisions::softmax(const std::vector<double>& scores, double /*temperature*/) {
  return below(scores.size());
}

std::size_t AllDecisions::label(std::size_t used, std::size_t limit) {
  return below(std::min(used + 1, limit));
}

bool AllDecisions::next() {
  decisions_.resize(at_);
  at_ = 0;
  while (!decisions_.empty() && decisions_.back().chosen + 1 == decisions_.back().count) decisions_.pop_back();
  if (decisions_.empty()) return false;
  ++decisions_.back().chosen;
  return true;
}

}  // namespace simsync
