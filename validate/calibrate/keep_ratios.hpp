// What the fitted numbers leave of measured collectives, kept where it tells something. Private to this folder.
#pragma once
#include <cstddef>
#include <vector>

#include "validate/calibrate/calibrate.hpp"

namespace simsync::detail {

/// The ratios of all measured groups, and whether they tell more than the numbers alone: every size of a group with at
/// least three is left out in turn and told by the group's others. All groups are kept or none, so that no measured
/// group takes another's.
struct Ratios {
  std::vector<MeasuredRatios> groups;
  std::size_t tested = 0;  ///< sizes that were left out
  double without = 0.0;    ///< mean of |log(measured / predicted)| over them
  double left_out = 0.0;   ///< the same with the ratio that the group's other sizes give
  /// Over at least eight sizes: fewer tell noise from a shape by chance. A size that is left out lies in a gap twice as
  /// wide as those between measured sizes, where ratios are used: ratios that are no worse there are better in use. Of
  /// noise, which a line between two sizes tells 1.2 times as badly as nothing, 16 of 100 groups of 15 sizes pass.
  [[nodiscard]] bool help() const;
};

/// Rows of collectives by primitive, nodes and ranks. Several rows of one size count with their geometric mean.
/// Collectives by an algorithm that `cluster` would not choose are left out.
Ratios ratios_of(const Cluster& cluster, const std::vector<CalibratedRow>& rows);

}  // namespace simsync::detail
