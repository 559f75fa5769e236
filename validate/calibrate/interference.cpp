#include "validate/calibrate/interference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "platforms/reader.hpp"
#include "validate/calibrate/model_fit.hpp"
#include "validate/fit.hpp"

namespace simsync::detail {
namespace {

constexpr Scale kAxis{.dimension = Dimension::Number, .logarithmic = false};

struct Found {
  double value = 0.0;
  double deviation = 0.0;
};

std::vector<double> residuals_at(double interference, const Cluster& cluster, const std::vector<Probe>& overlaps) {
  Cluster changed = cluster;
  set_parameter(changed, std::string(kInterference), kAxis.text(interference));
  std::vector<double> out;
  for (const Probe& probe : overlaps)
    out.push_back(weight_of(probe) * std::log(predicted_time(probe, changed) / probe.measured));
  return out;
}

Found fit(const Cluster& cluster, const std::vector<Probe>& overlaps, const Unknown& range) {
  const auto value = [&](double share) { return kAxis.at(share, range.low, range.high); };
  const ResidualFunction residuals = [&](const std::vector<double>& shares) {
    return residuals_at(value(shares.front()), cluster, overlaps);
  };
  FitResult result = fit_shares(1, residuals, {.robust_scale = kFirstCut});
  const double cut = std::max(kLeastCut, spread_of(residuals(result.shares)));
  if (cut < kFirstCut)
    result = fit_shares(1, residuals, {.robust_scale = cut, .starts = {result.shares}, .search = false});
  const double freedom = std::max(1.0, static_cast<double>(overlaps.size()) - 1.0);
  const double error = std::max(
      {kLeastError, repeat_pct_of(overlaps) / 100.0, std::sqrt(loss_of(residuals(result.shares), cut, 0) / freedom)});
  return {.value = parse_scaled(kAxis.text(value(result.shares.front())))->value,  // as the file will say
          .deviation = error * (range.high - range.low) * std::sqrt(std::max(0.0, result.covariance[0][0]))};
}

}  // namespace

void find_interference(const Cluster& cluster, const std::vector<Probe>& overlaps, const Unknown& range,
                       CalibrationResult& out) {
  const std::string key(kInterference);
  if (overlaps.empty()) refuse(key, kHardly);
  const Found found = fit(cluster, overlaps, range);
  constexpr double kApart = 3.0;  // standard deviations from 0: there are few rows to know them from
  if (kApart * found.deviation <= found.value)
    return add_alone(out.calibration, {key, found.value, kAxis, found.deviation});
  constexpr double kLittle = 0.1;  // of compute's speed: what is known to be less may be nothing
  if (found.deviation < kLittle && range.low == 0.0) {
    out.notes.push_back(fmt::format("'{}' cannot be told from 0 and is taken as 0", key));
    out.calibration.assumed.emplace_back(key, "0");
    return;
  }
  if (range.demanded) refuse(key, kHardly);
  out.notes.push_back(fmt::format("nothing depends on '{}', which was left as it is", key));
}

}  // namespace simsync::detail
