// What the numbers of a network rest on.
#pragma once
#include "platforms/cluster.hpp"
#include "sim/plan/plan.hpp"

namespace simsync {

/// What the rates of those links rest on that a job's communication crosses: between nodes the links of NICs, on one
/// node the links in it.
enum class NetworkBasis {
  File,        ///< the cluster file
  Set,         ///< a rate, or a limit of the network, is set to another value
  Calibrated,  ///< a calibration has changed a rate, a limit of the network or what collectives cost
};

/// `file` is the cluster as its file describes it, `calibrated` with the calibration, if any, and `used` with settings,
/// too.
NetworkBasis network_basis(const Plan& plan, const Cluster& file, const Cluster& calibrated, const Cluster& used);

}  // namespace simsync
