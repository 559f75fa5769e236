// Another cluster's calibration as a prior. Private to this folder.
#pragma once
#include <Eigen/Dense>
#include <vector>

#include "validate/calibrate/calibrate.hpp"

namespace simsync::detail {

/// How far the values of some unknowns are from what the prior expects.
class PriorDistance {
public:
  /// Knows nothing.
  PriorDistance() = default;
  /// Its covariance is widened by `between_clusters` (a standard deviation on a logarithmic axis).
  PriorDistance(const Calibration& prior, double between_clusters, const std::vector<Unknown>& unknowns);

  /// Number of unknowns that the prior knows.
  [[nodiscard]] std::size_t size() const { return known_.size(); }
  /// Appends size() distances in the prior's standard deviations, in the unit of the rows' residuals. `unknowns` are
  /// those that it was made for, `shares` their places.
  void add(const std::vector<Unknown>& unknowns, const std::vector<double>& shares, std::vector<double>& out) const;

private:
  double error_ = 0.0;              ///< of the prior's rows
  std::vector<std::size_t> known_;  ///< places among the unknowns
  Eigen::VectorXd mean_;            ///< of their logarithms
  Eigen::MatrixXd root_;            ///< inverse root of the covariance
};

}  // namespace simsync::detail
