// Runs a study: calibrates on some rows, predicts the others, compares.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "validate/cases.hpp"
#include "validate/predictor.hpp"
#include "validate/summary.hpp"

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
