// A step by the number of shards of the sparse variables.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace simsync {

/// Seconds of a step by the number of shards, as Parallax has it: `fixed` + `divided` / n + `per_shard` (n - 1). What
/// servers do in parallel shrinks with n; what every shard costs grows.
struct ShardCurve {
  double fixed = 0.0;
  double divided = 0.0;
  double per_shard = 0.0;
  std::size_t samples = 0;
  double rms = 0.0;  ///< s, over the samples; three of them are met exactly
  std::int64_t fewest = 1;
  std::int64_t most = 1;  ///< counts that were sampled: nothing is said of others

  [[nodiscard]] double step(std::int64_t shards) const;
  /// The count of `fewest` to `most` with the shortest step.
  [[nodiscard]] std::int64_t best() const;
};

/// By least squares. Fewer than three samples fit no curve.
std::optional<ShardCurve> fit_shard_curve(const std::map<std::int64_t, double>& steps);

}  // namespace simsync
