#include "strategies/search/scores.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.hpp"

namespace simsync::detail {

std::vector<double> scores_of(const std::vector<Example>& examples, const Ranker& ranker) {
  std::vector<double> out;
  for (const Example& example : examples) out.push_back(ranker.score(example.features));
  return out;
}

double deviation_within_domains(const std::vector<Example>& examples, const std::vector<double>& scores) {
  SIMSYNC_ASSERT(examples.size() == scores.size());
  std::map<int, std::vector<double>> domains;
  for (std::size_t i = 0; i < examples.size(); ++i) domains[examples[i].domain].push_back(scores[i]);
  double squares = 0.0;
  double largest = 0.0;
  for (const auto& [domain, members] : domains) {
    double mean = 0.0;
    for (const double score : members) mean += score / static_cast<double>(members.size());
    for (const double score : members) {
      squares += (score - mean) * (score - mean);
      largest = std::max(largest, std::abs(score));
    }
  }
  if (examples.empty()) return 0.0;
  constexpr double kRounding = 1e-12;
  const double out = std::sqrt(squares / static_cast<double>(examples.size()));
  return out > kRounding * largest ? out : 0.0;
}

}  // namespace simsync::detail
