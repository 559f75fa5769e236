#include "strategies/search/shard_curve.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

namespace simsync {

double ShardCurve::step(std::int64_t shards) const {
  const auto n = static_cast<double>(shards);
  return fixed + divided / n + per_shard * (n - 1.0);
}

std::int64_t ShardCurve::best() const {
  std::int64_t out = step(fewest) <= step(most) ? fewest : most;
  if (divided <= 0.0 || per_shard <= 0.0) return out;
  const double least =
      std::clamp(std::sqrt(divided / per_shard), static_cast<double>(fewest), static_cast<double>(most));
  for (const double n : {std::floor(least), std::ceil(least)})
    if (step(static_cast<std::int64_t>(n)) < step(out)) out = static_cast<std::int64_t>(n);
  return out;
}

std::optional<ShardCurve> fit_shard_curve(const std::map<std::int64_t, double>& steps) {
  if (steps.size() < 3) return std::nullopt;
  const auto rows = static_cast<Eigen::Index>(steps.size());
  Eigen::MatrixXd terms(rows, 3);
  Eigen::VectorXd measured(rows);
  Eigen::Index row = 0;
  for (const auto& [shards, step] : steps) {
    const auto n = static_cast<double>(shards);
    terms.row(row) << 1.0, 1.0 / n, n - 1.0;
    measured(row++) = step;
  }
  const Eigen::Vector3d fit = terms.colPivHouseholderQr().solve(measured);
  return ShardCurve{.fixed = fit(0),
                    .divided = fit(1),
                    .per_shard = fit(2),
                    .samples = steps.size(),
                    .rms = std::sqrt((terms * fit - measured).squaredNorm() / static_cast<double>(rows)),
                    .fewest = steps.begin()->first,
                    .most = steps.rbegin()->first};
}

}  // namespace simsync
