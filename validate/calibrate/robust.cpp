#include "validate/calibrate/robust.hpp"

#include <algorithm>
#include <cmath>

namespace simsync::detail {

double loss_of(const std::vector<double>& residuals, double cut, std::size_t plain) {
  double sum = 0.0;
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    const double r = std::abs(residuals[i]);
    sum += r <= cut || i + plain >= residuals.size() ? r * r : cut * (2.0 * r - cut);
  }
  return sum;
}

double spread_of(std::vector<double> residuals) {
  constexpr double kNormal = 1.4826;
  for (double& r : residuals) r = std::abs(r);
  const auto middle = residuals.begin() + static_cast<std::ptrdiff_t>(residuals.size() / 2);
  std::nth_element(residuals.begin(), middle, residuals.end());
  return kNormal * *middle;
}

double weight_of(const Probe& probe) {
  constexpr double kWellRepeated = 0.1;
  return 1.0 / std::hypot(1.0, probe.repeat / kWellRepeated);
}

double repeat_pct_of(const std::vector<Probe>& probes) {
  double sum = 0.0;
  double weight = 0.0;
  for (const Probe& probe : probes) {
    if (probe.repeat <= 0.0) continue;
    sum += probe.repeat * probe.measured.value();
    weight += probe.measured.value();
  }
  return weight > 0.0 ? 100.0 * sum / weight : 0.0;
}

}  // namespace simsync::detail
