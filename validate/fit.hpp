// Bounded least squares with a robust loss, for few parameters and an expensive model.
#pragma once
#include <functional>
#include <vector>

namespace simsync {

/// Residuals of a model whose parameters are given as shares (0 to 1) of their ranges.
using ResidualFunction = std::function<std::vector<double>(const std::vector<double>& shares)>;

struct FitOptions {
  double robust_scale = 0.1;        ///< residuals beyond this count linearly (Huber)
  double measurement_error = 0.02;  ///< spread of a residual, for the question whether a parameter is identified
};

struct FitResult {
  std::vector<double> shares;
  double rms = 0.0;  ///< root mean square residual at the solution
  /// How far each share moves (one standard deviation, the others free) when the residuals move by
  /// `measurement_error`; infinite when nothing depends on it.
  std::vector<double> spread;
  int evaluations = 0;
};

/// Best of a coarse grid, improved by Ceres with numeric derivatives. `parameters` is 1 to 3.
/// Deterministic. Cost: some 30 to 200 evaluations of `residuals`.
FitResult fit_shares(std::size_t parameters, const ResidualFunction& residuals, const FitOptions& options = {});

}  // namespace simsync
