// How far numbers of one kind were off where they could be compared with measurements.
#pragma once
#include <string>

#include "base/yaml.hpp"

namespace simsync {

/// Root mean square of log(measured / predicted): errors are taken as log-normal around the prediction, so that a bias
/// widens the interval and does not move it.
struct Deviation {
  double value = 0.0;
  int rows = 0;        ///< that it was derived from; 0: somebody said so
  std::string source;  ///< which rows these are
};

/// Reads `{deviation: 0.3, rows: 129, source: ...}`.
Deviation read_deviation(const yaml::Node& node);

/// 95 % of a normal distribution lie below so many standard deviations, 90 % within them on both sides.
inline constexpr double kNormal90 = 1.6449;

}  // namespace simsync
