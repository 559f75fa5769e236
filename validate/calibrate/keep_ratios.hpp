// What the fitted numbers leave of measured collectives, kept where it tells something. Private to this folder.
#pragma once
#include <string>
#include <vector>

#include "validate/calibrate/calibrate.hpp"

namespace simsync::detail {

/// The ratios of one group, and whether its other sizes tell the one that is left out better than the numbers alone.
struct GroupRatios {
  MeasuredRatios ratios;
  double without = 0.0;   ///< mean of |log(measured / predicted)|
  double left_out = 0.0;  ///< the same with the ratio that the group's other sizes give
  [[nodiscard]] bool helps() const { return left_out < without; }
};

/// Rows of collectives by primitive, nodes and ranks; groups of at least three sizes. Several rows of one size count
/// with their geometric mean. Collectives by an algorithm that `cluster` would not choose are left out.
std::vector<GroupRatios> ratios_of(const Cluster& cluster, const std::vector<CalibratedRow>& rows);

}  // namespace simsync::detail
