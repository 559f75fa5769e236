// Bounded least squares with a robust loss, for few parameters and an expensive model.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace simsync {

/// Residuals of a model whose parameters are given as shares (0 to 1) of their ranges.
using ResidualFunction = std::function<std::vector<double>(const std::vector<double>& shares)>;

struct FitOptions {
  double robust_scale = 0.1;        ///< residuals beyond this count linearly (Huber)
  double measurement_error = 0.02;  ///< spread of a residual, for the question whether a parameter is identified
  std::vector<std::vector<double>> starts;  ///< points to improve besides those that the fit finds by itself
  std::size_t followed = 16;   ///< starts that are improved to the end; of more than that, the most promising ones
  bool search = true;          ///< false: nothing but `starts` is improved
  std::size_t plain_tail = 0;  ///< so many residuals at the end (a prior's) are squared as they are
  bool costly = false;         ///< residuals take long: steps find their length without gradients
  /// Shares that all points of the search have in common, by parameter. The search varies those without one, and those
  /// beyond the end; then all are improved.
  std::vector<std::optional<double>> held;
};

struct FitResult {
  std::vector<double> shares;
  double rms = 0.0;  ///< root mean square residual at the solution
  /// How far each share moves (one standard deviation, the others free) when the residuals move by
  /// `measurement_error`; infinite when nothing depends on it.
  std::vector<double> spread;
  /// Inverse of J^T W J at the solution, W the weights of the robust loss: the covariance of the shares for residuals
  /// of unit variance.
  std::vector<std::vector<double>> covariance;
  /// How much each share alone moves the residuals: root of the sum of their squared derivatives, under the weights.
  std::vector<double> effect;
  int evaluations = 0;
};

inline constexpr std::size_t kMostFitted = 16;
/// A fit that leaves its rows farther off than this (root mean square) is one that the model does not describe.
inline constexpr double kLargeRmsPct = 10.0;

/// Best of a coarse grid (1 to 3 parameters) or of the eight best of 200 points that fill the space evenly (more),
/// improved by Ceres with numeric derivatives. Deterministic. Cost: some 30 to 200
/// evaluations of `residuals` for 1 to 3 parameters, some thousands for more.
FitResult fit_shares(std::size_t parameters, const ResidualFunction& residuals, const FitOptions& options = {});

extern "C" {
/// The same, into `out`, as load_fit.cpp calls it.
void simsync_fit_shares(std::size_t parameters, const ResidualFunction& residuals, const FitOptions& options,
                        FitResult& out);
}

}  // namespace simsync
