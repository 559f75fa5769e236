// Examples for rankers whose order is known.
#pragma once
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "strategies/search/ranker_kinds.hpp"

namespace simsync::test {

/// A step of each list of features, in seconds.
using Truth = double (*)(const std::vector<double>&);

inline double sum_of_two(const std::vector<double>& x) {
  return std::exp(2.0 * x[0] - 1.0 * x[1]);
}
inline double opposite(const std::vector<double>& x) {
  return 1.0 / sum_of_two(x);
}

/// So many features between 0 and 1; the truth sees the first ones.
inline std::vector<Example> drawn(std::size_t count, std::size_t width, Truth truth, std::uint64_t seed) {
  Random random(seed);
  std::vector<Example> out;
  for (std::size_t i = 0; i < count; ++i) {
    Example example;
    for (std::size_t k = 0; k < width; ++k) example.features.push_back(random.unit());
    example.step = truth(example.features);
    out.push_back(std::move(example));
  }
  return out;
}

/// As many features as `kind` expects; where it sees a simulated step, that knows the first of the two that count.
inline std::vector<Example> trials_of(RankerKind kind, std::size_t count, Truth truth, std::uint64_t seed) {
  auto out = drawn(count, ranker_schema(kind).names.size(), truth, seed);
  if (const auto simulated = simulated_feature(kind))
    for (Example& example : out) example.features[*simulated] = 2.0 * example.features[0];
  return out;
}

/// Kinds that this build has.
inline std::vector<RankerKind> kinds() {
  std::vector<RankerKind> out{RankerKind::Linear, RankerKind::AutoSyncLinear, RankerKind::Recurrent};
#ifdef SIMSYNC_HAS_XGBOOST
  out.push_back(RankerKind::Boosted);
#endif
  return out;
}

}  // namespace simsync::test
