// How far predictions are from measurements, in four numbers.
#pragma once
#include <string>
#include <vector>

#include "base/units.hpp"

namespace simsync {

/// One pair of numbers to be compared.
struct Sample {
  std::string group;  ///< only samples of one group are ranked against each other
  Seconds measured;
  Seconds predicted;
  std::string alike = {};  ///< samples that share one (other than empty) are not ranked against each other
};

/// 100 (predicted / measured - 1).
double error_pct(const Sample& sample);

/// Mean of |error_pct|; 0 without samples.
double mean_absolute_error_pct(const std::vector<Sample>& samples);
/// The smallest |error_pct| that at least 90 % of the samples do not exceed (nearest rank); 0 without samples.
double p90_error_pct(const std::vector<Sample>& samples);

/// Order of pairs within groups.
struct Ranking {
  std::size_t pairs = 0;     ///< pairs whose measured times differ by more than the tie threshold
  double accuracy = 1.0;     ///< share of them that is predicted in the measured order
  double kendall_tau = 1.0;  ///< tau-b over all pairs within groups; 1 when no pair can be ordered
};

/// `tie_pct`: a pair is left out of `accuracy` when the larger measured time exceeds the smaller by no more than
/// this. A pair with equal predictions counts one half. tau-b = (concordant - discordant) /
/// sqrt((pairs - measured ties) (pairs - predicted ties)), where a tie means exactly equal times.
/// Cost: O(n^2) in the size of a group.
Ranking ranking(const std::vector<Sample>& samples, double tie_pct);

}  // namespace simsync
