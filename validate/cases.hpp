// Rows of a study as questions to a predictor.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/engine/predict.hpp"
#include "validate/study.hpp"
#include "validate/workload.hpp"

namespace simsync {

/// Why a row is or is not scored.
enum class CaseRole {
  Scored,
  Calibration,  ///< its measured time went into step_time or a fitted parameter
  Deviation,    ///< known to be wrong
};
const char* name_of(CaseRole role);

struct Case {
  std::string id;
  std::size_t row = 0;     ///< of the study's table
  PredictRequest request;  ///< with every setting except fitted parameters
  Seconds measured;        ///< of one step
  /// Row of the table whose whole step the case's compute follows from (StepTimeRule::whole_step); none: `request`
  /// says.
  std::optional<std::size_t> whole_step_row;
  CaseRole role = CaseRole::Scored;
  std::string entry;        ///< of a deviation, scored or not; empty: none is known
  double beyond_pct = 0.0;  ///< of a deviation
  std::string rank_group;
  Workload workload;
  std::string strategy;  ///< strategy_of: equal in both, the same question
};

/// Every row that the study selects, in the order of the table. Roles: a row that calibrates is Calibration even
/// when it is also listed as a deviation.
/// @throws InputError naming file, line and column of the cell that is at fault, or the case that no
/// calibrating row fits.
std::vector<Case> cases_of(const Study& study);

/// Rows of the cases whose ids are among the names or match them as patterns (`*`, `?`); of all when there is no name.
/// @throws InputError for a name that no case has, with the closest one.
std::set<std::size_t> rows_named(const Study& study, const std::vector<Case>& cases,
                                 const std::vector<std::string>& names);

/// Seconds of one step of one row. `samples_per_s`: batch * workers / value; `samples_per_s_per_worker`:
/// batch / value; `s` and `ms`: the value itself.
Seconds measured_step(const Study& study, std::size_t row, int workers, std::int64_t batch);

}  // namespace simsync
