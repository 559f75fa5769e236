// How far a predicted step may be off, from what is known about its inputs.
#pragma once
#include "sim/engine/predict.hpp"

namespace simsync {

/// 90 % of steps are expected between the two.
struct StepInterval {
  Seconds low;
  Seconds high;
};

/// The step's variance on a logarithmic axis is the sum of
///   - g^T C g, C the calibration's covariance and g the change of log(step) by each parameter, from replays with that
///     parameter one standard deviation down and up (only up or down where the other is out of range); a parameter that
///     a setting of the request gives counts as known;
///   - the calibration's residual (root mean square) times the share of the step that is exposed communication;
///   - the variance of the profile's measured steps times the share of the step that is compute;
///   - how far one run on that cluster is from another, as the calibration's measurements repeated.
/// Both ends equal the step without a calibration. Cost: two replays per parameter. @throws as predict() does.
StepInterval step_interval(const PredictRequest& request, const Problem& problem, const Prediction& prediction);

}  // namespace simsync
