// Runs a study: calibrates on some rows, predicts the others, compares.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "validate/cases.hpp"
#include "validate/metrics.hpp"
#include "validate/predictor.hpp"

namespace simsync {

struct FittedParameter {
  std::string key;
  std::string left_out;  ///< `column=value` of the cases that it is set for and was not fitted to; empty: of no meaning
  std::string value;     ///< as a setting
  double spread = 0.0;   ///< share of its range that the stated measurement error moves it
  double rms_pct = 0.0;  ///< of the rows that it was fitted to, after the fit
  std::size_t rows = 0;
  bool at_bound = false;  ///< ends at the low or high that the study gives: the optimum may lie beyond
};

struct CaseResult {
  Case the_case;
  Seconds predicted;
  std::optional<StepInterval> interval;  ///< where the predictor tells one
  std::string failure;                   ///< why there is no prediction; empty when there is one
  /// Whether the measured step lies in the interval.
  [[nodiscard]] bool covered() const {
    return interval && interval->low <= the_case.measured && the_case.measured <= interval->high;
  }
  [[nodiscard]] Sample sample() const { return {the_case.rank_group, the_case.measured, predicted}; }
  /// Ranked only against other strategies for the same work.
  [[nodiscard]] Sample within_workload() const {
    return {the_case.workload, the_case.measured, predicted, the_case.strategy};
  }
};

/// Over the scored cases.
struct Summary {
  std::size_t cases = 0;
  double mape_pct = 0.0;
  double p90_error_pct = 0.0;
  double pairwise_accuracy = 1.0;
  double kendall_tau = 1.0;
  std::size_t pairs = 0;           ///< ranked for pairwise_accuracy
  double strategy_accuracy = 1.0;  ///< the same over those pairs that only the strategy or its options tell apart
  std::size_t strategy_pairs = 0;
  std::size_t calibration = 0;  ///< cases whose measurement was used
  std::size_t deviations = 0;   ///< cases left out because they are known to be wrong
  double mape_all_pct = 0.0;    ///< scored and deviating cases together
  /// Share of the scored cases that lie in their 90 % interval; absent where none is known.
  std::optional<double> coverage_pct;
};

struct StudyResult {
  std::string study;
  std::vector<FittedParameter> parameters;
  std::vector<CaseResult> cases;  ///< in the order of the table
  Summary summary;
  std::vector<std::string>
      notes;  ///< fits to distrust: at a bound, or far from their own rows; they do not fail a study
  std::vector<std::string> findings;  ///< missed tolerances, closed deviations, failed predictions
  [[nodiscard]] bool passed() const { return findings.empty(); }
};

/// Called after every finished piece of work: what is done, and how many of how many; the total of a fit is 0
/// because it is not known before.
using Progress = std::function<void(const std::string& what, std::size_t done, std::size_t total)>;

/// Deterministic for a deterministic predictor.
/// @throws InputError when a row cannot be read, a fitted parameter is not identified by its rows (naming it), or
/// the predictor rejects a name or setting; PlanError when a row that calibrates cannot be predicted.
StudyResult evaluate(const Study& study, Predictor& predictor, const Progress& progress = {});

}  // namespace simsync
