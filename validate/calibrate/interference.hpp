// How much collectives slow the compute beside them. Private to this folder.
#pragma once
#include <vector>

#include "validate/calibrate/calibrate.hpp"

namespace simsync::detail {

/// Adds to `out` what `overlaps` say about collective.interference, found between the bounds of `range`. `cluster` is
/// calibrated in all else and has grown for the probes.
///
/// It is found apart from the others because nothing else is seen in these rows as long as the collectives outlast the
/// compute, and the time of compute repeats far better than that of messages; and on a linear axis, because it may be
/// 0.
/// @throws InputError when it was demanded and the rows leave it open.
void find_interference(const Cluster& cluster, const std::vector<Probe>& overlaps, const Unknown& range,
                       CalibrationResult& out);

}  // namespace simsync::detail
