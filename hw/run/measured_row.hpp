// A measurement as a row of the table that `simsync measure` writes (docs/columns.md).
#pragma once
#include <string>
#include <vector>

#include "hw/run/measurement.hpp"
#include "sim/problem/problem.hpp"

namespace simsync {

/// How many times longer than its profile says a rank's device computes.
double device_slowdown(const Problem& problem, int rank);

const std::vector<std::string>& measured_header();
/// `measured` must have a step; `backend` is what had the collectives, `gloo` or `nccl`.
std::vector<std::string> measured_cells(const PredictRequest& request, const Problem& problem,
                                        const Measurement& measured, const std::string& backend);

}  // namespace simsync
