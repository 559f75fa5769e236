#include "validate/calibrate/prior_distance.hpp"

#include <algorithm>
#include <cmath>

#include "validate/calibrate/robust.hpp"

namespace simsync::detail {

PriorDistance::PriorDistance(const Calibration& prior, double between_clusters, const std::vector<Unknown>& unknowns)
    : error_(std::max(kLeastError, prior.residuals.rms_pct / 100.0)) {
  std::vector<std::size_t> from;
  for (std::size_t p = 0; p < unknowns.size(); ++p) {
    for (std::size_t q = 0; q < prior.parameters.size(); ++q) {
      if (prior.parameters[q].key != unknowns[p].key || prior.parameters[q].value <= 0.0) continue;
      known_.push_back(p);
      from.push_back(q);
    }
  }
  if (known_.empty()) return;  // a decomposition of an empty matrix reads beyond it
  const auto n = static_cast<Eigen::Index>(from.size());
  Eigen::MatrixXd covariance(n, n);
  mean_.resize(n);
  for (Eigen::Index a = 0; a < n; ++a) {
    const auto& parameter = prior.parameters[from[static_cast<std::size_t>(a)]];
    const double unit = parameter.scale.logarithmic ? 1.0 : parameter.value;
    mean_[a] = std::log(parameter.value);
    for (Eigen::Index b = 0; b < n; ++b) {
      const auto& other = prior.parameters[from[static_cast<std::size_t>(b)]];
      const double other_unit = other.scale.logarithmic ? 1.0 : other.value;
      covariance(a, b) =
          prior.covariance(from[static_cast<std::size_t>(a)], from[static_cast<std::size_t>(b)]) / unit / other_unit;
    }
    covariance(a, a) += between_clusters * between_clusters;
  }
  root_ = Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(covariance).operatorInverseSqrt();
}

void PriorDistance::add(const std::vector<Unknown>& unknowns, const std::vector<double>& shares,
                        std::vector<double>& out) const {
  if (known_.empty()) return;
  Eigen::VectorXd distance(mean_.size());
  for (Eigen::Index a = 0; a < distance.size(); ++a) {
    const std::size_t p = known_[static_cast<std::size_t>(a)];
    distance[a] = std::log(unknowns[p].value_at(shares[p])) - mean_[a];
  }
  const Eigen::VectorXd scaled = error_ * (root_ * distance);
  for (const double value : scaled) out.push_back(value);
}

}  // namespace simsync::detail
