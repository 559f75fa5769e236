// A calibration as text for people.
#pragma once
#include <string>
#include <vector>

#include "validate/calibrate/calibrate.hpp"

namespace simsync {

/// Parameters with their spreads, and the residual figures.
std::string parameter_table(const CalibrationResult& result);
/// Figures over all rows, then the `worst` rows that are farthest off.
std::string residual_table(const std::string& title, const std::vector<CalibratedRow>& rows, std::size_t worst);
/// One row per measurement: `use` says what it was used for.
const std::vector<std::string>& calibration_header();
std::vector<std::string> calibration_cells(const std::string& use, const CalibratedRow& row);

}  // namespace simsync
