// How far numbers of one kind were off where they could be compared with measurements.
#pragma once
#include <string>

#include "base/yaml.hpp"

namespace simsync {

/// 90 % of a normal distribution lie within so many standard deviations on both sides.
inline constexpr double kNormal90 = 1.6449;

/// The middle 90 % of measured / predicted: 5 % of the rows lie below `low` and 5 % above `high`. A bias of the
/// prediction is part of it, so the two need not be inverse.
struct Spread {
  double low = 1.0;
  double high = 1.0;
  int rows = 0;        ///< that it was derived from; 0: somebody said so
  std::string source;  ///< which rows these are
};

/// Of a log-normal error around the prediction with this standard deviation of its logarithm.
Spread spread_of(double deviation);
/// Reads `{low: 0.7, high: 1.5, rows: 129, source: ...}`, with low up to 1 and high from 1.
Spread read_spread(const yaml::Node& node);

}  // namespace simsync
