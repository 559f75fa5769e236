// What a study fitted, as calibrations that predict and other studies take.
#pragma once
#include <string>
#include <vector>

#include "platforms/calibration.hpp"
#include "validate/evaluate.hpp"

namespace simsync {

/// One for each set of fitted parameters that cases of the result share, in the order of their first cases; a study
/// that fits one number for each transport has one for each. A calibration that the study uses already is part of it.
/// With it and its settings, a case is predicted as in the study, unless a setting has a key of the calibration: a fit
/// of a study comes after its settings, a calibration before. `date`: YYYY-MM-DD. @throws InputError when a cluster or
/// calibration can no longer be read.
std::vector<Calibration> fitted_calibrations(const Study& study, const StudyResult& result, const std::string& date);

}  // namespace simsync
