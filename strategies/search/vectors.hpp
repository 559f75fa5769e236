// Lists of numbers as Eigen's vectors, and back. Private to strategies/search.
#pragma once
#include <Eigen/Core>
#include <vector>

namespace simsync::detail {

/// Valid as long as the list.
inline Eigen::Map<const Eigen::VectorXd> as_vector(const std::vector<double>& values) {
  return {values.data(), static_cast<Eigen::Index>(values.size())};
}

inline std::vector<double> as_values(const Eigen::VectorXd& vector) {
  return {vector.begin(), vector.end()};
}

}  // namespace simsync::detail
