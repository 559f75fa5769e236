// The figures of a study, over its scored cases.
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "validate/choice.hpp"

namespace simsync {

/// A figure that has nothing to be taken over is none: never a perfect one.
struct Summary {
  std::size_t cases = 0;
  std::optional<double> mape_pct;
  std::optional<double> p90_error_pct;
  Ranking ranking;           ///< pairs of one rank group
  std::size_t unpaired = 0;  ///< cases that are alone in their rank group
  Choices choices;           ///< of these pairs, those that only the strategy tells apart
  std::optional<double> mean_regret_pct;
  std::optional<double> max_regret_pct;
  std::size_t calibration = 0;         ///< cases whose measurement was used
  std::size_t deviations = 0;          ///< cases left out because they are known to be wrong
  std::optional<double> mape_all_pct;  ///< scored and deviating cases together
  /// Share of the scored cases that lie in their 90 % interval; absent where none is known.
  std::optional<double> coverage_pct;
};

/// How far parameters carry: cases whose parameters were fitted with their own value of `leave_out` left out.
struct FitTransfer {
  std::size_t cases = 0;  ///< scored
  std::optional<double> mape_pct;
  std::optional<double> in_sample_pct;  ///< of the same cases, with parameters fitted to all rows at once
};

/// `tie_pct`: the stated error of a measured value; closer pairs are not ranked.
Summary summarize(const std::vector<CaseResult>& cases, double tie_pct);

}  // namespace simsync
