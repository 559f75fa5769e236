// How much residuals of measurements count. Private to this folder.
#pragma once
#include <cstddef>
#include <vector>

#include "sim/problem/probe.hpp"

namespace simsync::detail {

/// Residuals beyond this count linearly in a first fit.
inline constexpr double kFirstCut = 0.1;
/// No measurement is so good that a residual of 2 % is an outlier.
inline constexpr double kLeastCut = 0.02;
/// No set of measurements is better than this, whatever its residuals.
inline constexpr double kLeastError = 0.002;
/// Changes of a prediction that nobody can measure.
inline constexpr double kNoEffect = 1e-3;
/// A parameter that the rows leave open by more than this (one standard deviation, as a factor) is not identified.
inline constexpr double kMostFactor = 2.0;

/// Sum of squares under Huber's cut: twice the robust loss. The last `plain` ones, a prior's, are squared as they are.
double loss_of(const std::vector<double>& residuals, double cut, std::size_t plain);
/// Standard deviation of most residuals, whatever the worst ones are: their median distance from 0, as if normal.
double spread_of(std::vector<double> residuals);
/// A row whose repetitions spread as widely as the loss calls far off, or more, says less.
double weight_of(const Probe& probe);
/// How far one run is from another, in percent: a step is many messages one after another, so each measurement counts
/// by its time. 0: not known.
double repeat_pct_of(const std::vector<Probe>& probes);

}  // namespace simsync::detail
