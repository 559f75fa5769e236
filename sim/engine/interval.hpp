// How far a predicted step may be off, from what is known about its inputs.
#pragma once
#include "sim/engine/predict.hpp"

namespace simsync {

/// 90 % of steps are expected between the two.
struct StepInterval {
  Seconds low;
  Seconds high;
};

/// Three errors are of whole parts of the step, each the middle 90 % of measured over predicted:
///   - of its compute: time_error, or the setting `compute_error`; with it the spread of the profile's measured steps;
///   - of all other times together: network_errors, or the setting `network_error`; with a calibration the root mean
///     square of its residuals;
///   - of the compute of several workers against one alone (NetworkErrors::interference), unless
///     `collective.interference` is set or calibrated, or `network_error` is given.
/// What hides behind the other counts less, so the step is replayed with less compute, by the compute's error and by
/// the network's. That tells both: all times k times as long make a step of k times the length, so a network that takes
/// e^x of its time moves log(step) by x and what compute e^-x does. Each end of each error counts for its own side.
///
/// To the squares of these, on the logarithmic axis, are added those at 90 % of
///   - g^T C g, C the calibration's covariance and g the change of log(step) by each parameter, from replays with that
///     parameter one standard deviation down and up (only up or down where the other is out of range); a parameter that
///     a setting of the request gives counts as known;
///   - how far one run on that cluster is from another, as the calibration's measurements repeated;
///   - the standard error of the mean of steps that vary.
/// Cost: two replays, none for a device alone, and two more per parameter of a calibration. @throws as predict() does.
StepInterval step_interval(const PredictRequest& request, const Problem& problem, const Prediction& prediction);

}  // namespace simsync
