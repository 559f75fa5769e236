// What linear scaling would be.
#pragma once
#include "sim/problem/problem.hpp"

namespace simsync {

/// The throughput of the workers' devices, each of them alone, added up, as a multiple of that of the profile's device:
/// the number of workers where all have one kind of device. Hosts without a device are no workers, and a straggler
/// counts as if it were none.
double single_devices(const Problem& problem);
/// `throughput` in samples per second over that of the single devices.
double scaling_efficiency(const Problem& problem, double throughput);

}  // namespace simsync
