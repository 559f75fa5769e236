// Runs a study: calibrates on some rows, predicts the others, compares.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "validate/cases.hpp"
#include "validate/predictor.hpp"
#include "validate/summary.hpp"

namespace simsync {

struct FittedParameter {
  std::string key;
  std::string of;        ///< `column=value, ...` of the cases that it is fitted to and set for; empty: not limited so
  std::string left_out;  ///< `column=value` of the cases that it is set for and was not fitted to; empty: of no meaning
  std::string value;     ///< as a setting
  double spread = 0.0;   ///< share of its range that the stated measurement error moves it
  double rms_pct = 0.0;  ///< of the rows that it was fitted to, after the fit
  std::size_t rows = 0;
  bool at_bound = false;  ///< ends at the low or high that the study gives: the optimum may lie beyond
  Scale scale;
  double deviation = 0.0;  ///< as CalibratedParameter::deviation; the error of a row is the stated one at least
  std::size_t fit = 0;     ///< which of StudyResult::fits
};

/// Parameters that were found together, and from what.
struct Fit {
  std::size_t first = 0;                         ///< of StudyResult::parameters; one for each row of `correlation`
  std::vector<std::vector<double>> correlation;  ///< on the parameters' scales
  std::vector<std::string> cases;                ///< ids of the rows that it was fitted to
  std::vector<double> errors_pct;                ///< of their predictions, after the fit
};

struct StudyResult {
  std::string study;
  std::vector<FittedParameter> parameters;
  std::vector<Fit> fits;
  std::vector<CaseResult> cases;  ///< in the order of the table
  Summary summary;
  FitTransfer transfer;
  std::vector<std::string>
      notes;  ///< fits to distrust: at a bound, or far from their own rows; they do not fail a study
  std::vector<std::string> findings;  ///< missed tolerances, closed deviations, failed predictions
  [[nodiscard]] bool passed() const { return findings.empty(); }
};

/// Called after every finished piece of work: what is done, and how many of how many; the total of a fit is 0
/// because it is not known before.
using Progress = std::function<void(const std::string& what, std::size_t done, std::size_t total)>;

/// Calls `work(i)` for i = 0 ... count-1, in whatever processes, and hands the texts to `done` in the order of i.
using SideBySide = std::function<void(std::size_t count, const std::function<std::string(std::size_t)>& work,
                                      const std::function<void(std::size_t, const std::string&)>& done)>;

struct EvaluateOptions {
  Progress progress;
  /// Ids of cases, or patterns of them (`*`, `?`). Empty: all cases, with their figures and the tolerance. Otherwise
  /// these cases alone are predicted, after what they depend on was fitted, and there is no summary.
  std::vector<std::string> cases;
  /// Predicts the cases, once everything is fitted. Absent: they are predicted one after another, in this process.
  SideBySide side_by_side;
};

/// Deterministic for a deterministic predictor; a case is predicted alike alone and among all.
/// @throws InputError when a row cannot be read, a fitted parameter is not identified by its rows (naming it), the
/// predictor rejects a name or setting, or no case has a name that is asked for; PlanError when a row that calibrates
/// cannot be predicted.
StudyResult evaluate(const Study& study, Predictor& predictor, const EvaluateOptions& options = {});

}  // namespace simsync
