// How far predictions are from measurements, in four numbers.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"

namespace simsync {

/// One pair of numbers to be compared.
struct Sample {
  std::string group;  ///< only samples of one group are ranked against each other
  Seconds measured;
  Seconds predicted;
};

/// 100 (predicted / measured - 1).
double error_pct(const Sample& sample);

/// Mean of |error_pct|; 0 without samples.
double mean_absolute_error_pct(const std::vector<Sample>& samples);
/// The smallest |error_pct| that at least 90 % of the samples do not exceed (nearest rank); 0 without samples.
double p90_error_pct(const std::vector<Sample>& samples);

/// Order of pairs.
struct Ranking {
  std::size_t pairs = 0;              ///< whose measured times differ by more than the tie threshold
  std::size_t within_error = 0;       ///< the other pairs
  std::optional<double> accuracy;     ///< share of `pairs` that is predicted in the measured order; none without pairs
  std::optional<double> kendall_tau;  ///< tau-b over all pairs; none when no pair can be ordered
};

/// Ranks pairs that are added one after the other.
class PairRanking {
public:
  /// `tie_pct`: a pair is left out of the accuracy when the larger measured time exceeds the smaller by no more than
  /// this.
  explicit PairRanking(double tie_pct) : tie_pct_(tie_pct) {}
  void add(const Sample& a, const Sample& b);
  /// A pair with equal predictions counts one half in the accuracy. tau-b = (concordant - discordant) /
  /// sqrt((pairs - measured ties) (pairs - predicted ties)), where a tie means exactly equal times.
  [[nodiscard]] Ranking result() const;

private:
  double tie_pct_;
  std::size_t all_ = 0;
  std::size_t measured_ties_ = 0;
  std::size_t predicted_ties_ = 0;
  double concordant_ = 0.0;
  double discordant_ = 0.0;
  std::size_t ranked_ = 0;
  double right_ = 0.0;
};

/// All pairs within groups. Cost: O(n^2).
Ranking ranking(const std::vector<Sample>& samples, double tie_pct);

}  // namespace simsync
