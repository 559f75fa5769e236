// What the numbers of a network rest on.
#pragma once
#include "platforms/calibration.hpp"
#include "platforms/cluster.hpp"
#include "sim/plan/plan.hpp"

namespace simsync {

/// What the rates of those links rest on that a job's communication crosses: between nodes the links of NICs, on one
/// node the links in it.
enum class NetworkBasis {
  File,        ///< the cluster file
  Set,         ///< a rate, or a limit of the network, is set to another value
  Calibrated,  ///< a calibration has such a rate, a limit of the network or, for a job with collectives, their costs
};

/// `described` is the cluster without the request's settings, `used` with them; `calibration` may be null.
NetworkBasis network_basis(const Plan& plan, const Cluster& described, const Cluster& used,
                           const Calibration* calibration);

}  // namespace simsync
