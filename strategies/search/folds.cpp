#include "strategies/search/folds.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.hpp"
#include "base/random.hpp"

namespace simsync::detail {
namespace {

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Whether `a` is worse than `b` by more than the standard error of the mean difference.
bool is_worse(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> differences;
  for (std::size_t i = 0; i < a.size(); ++i) differences.push_back(b[i] - a[i]);
  const double mean = mean_of(differences);
  if (differences.size() < 2) return mean > 0.0;
  double squares = 0.0;
  for (const double value : differences) squares += (value - mean) * (value - mean);
  const auto count = static_cast<double>(differences.size());
  return mean > std::sqrt(squares / (count - 1.0) / count);
}

}  // namespace

std::vector<Fold> folds_of(const std::vector<Example>& examples) {
  constexpr std::size_t kFew = 50;
  constexpr std::size_t kHeld = 4;  // of a fold, where there are few
  const std::size_t count = std::clamp<std::size_t>(examples.size() / kHeld, 2, 5);
  const std::size_t deals = examples.size() < kFew ? 3 : 1;
  std::vector<Fold> out;
  std::vector<std::size_t> order(examples.size());
  for (std::size_t deal = 0; deal < deals; ++deal) {
    std::iota(order.begin(), order.end(), 0);
    Random random(stream_seed(1, {deal}));
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    for (std::size_t f = 0; f < count; ++f) {
      Fold fold;
      for (std::size_t i = 0; i < order.size(); ++i)
        (i % count == f ? fold.held : fold.known).push_back(examples[order[i]]);
      if (fold.known.size() >= 2 && fold.held.size() >= 2) out.push_back(std::move(fold));
    }
  }
  return out;
}

std::size_t first_of_the_best(const std::vector<std::vector<double>>& accuracies) {
  SIMSYNC_ASSERT(!accuracies.empty());
  if (accuracies.front().empty()) return 0;
  const auto best = std::max_element(accuracies.begin(), accuracies.end(),
                                     [](const auto& a, const auto& b) { return mean_of(a) < mean_of(b); });
  std::size_t out = 0;
  while (is_worse(accuracies[out], *best)) ++out;
  return out;
}

}  // namespace simsync::detail
