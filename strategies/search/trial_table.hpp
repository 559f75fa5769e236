// The table of trials that `search` and `dataset` write, and that rankers and calibrations learn from.
#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/csv.hpp"
#include "base/units.hpp"
#include "strategies/search/search.hpp"

namespace simsync {

/// What the prediction of a trial rests on, besides model, cluster, workers and batch.
struct TrialBasis {
  std::string settings;     ///< settings_text() of the question
  std::string calibration;  ///< name of its file and the beginning of its SHA-256; empty: none
  std::string runner;       ///< kOwnRunner, or empty: somebody else, or nobody where a trial is simulated
  friend bool operator==(const TrialBasis&, const TrialBasis&) = default;
};

/// Of trials that are real runs of this program, whatever the framework that a strategy is named for.
inline constexpr const char* kOwnRunner = "simsync";

/// One strategy and how fast it was.
struct TrialRow {
  int trial = 0;
  int round = 0;
  std::string origin;
  std::string strategy_id;
  std::string schedule;
  std::optional<Seconds> step;  ///< none: it could not run
  Seconds estimated;
  Seconds bound;
  std::optional<Seconds> replayed;  ///< by the native solver
  std::string model;
  std::string cluster;
  int workers = 1;
  std::int64_t batch = 1;  ///< samples of a worker in a step
  std::string evaluator;   ///< who said `step`: replay, estimate or measure
  double shards = 0.0;
  std::vector<double> autosync;     ///< in the order of autosync_schema()
  std::vector<double> features;     ///< in the order of strategy_schema()
  std::vector<double> segments;     ///< in the order of segment_schema(); empty: of a table from before there were any
  std::optional<TrialBasis> basis;  ///< none: of a table from before it was kept
};

/// Steps of one domain compare: of one model on one cluster, with as many workers and samples, said by one evaluator.
struct TrialDomain {
  std::string model;
  std::string cluster;
  int workers = 1;
  std::int64_t batch = 1;
  std::string evaluator;
  friend auto operator<=>(const TrialDomain&, const TrialDomain&) = default;
};
TrialDomain domain_of(const TrialRow& row);

/// What a candidate says of itself; number, round, step, evaluator and basis are left open. `samples`: of a worker in a
/// step.
TrialRow trial_row(const Candidate& candidate, const SearchTarget& target, std::int64_t samples);

/// Columns in the order of the members, features by their names.
const std::vector<std::string>& trial_header();
/// The columns that every table of trials begins with: older ones have no others.
std::vector<std::string> oldest_trial_header();
/// Seconds have all their digits, so that what is read back is the same number.
std::vector<std::string> trial_cells(const TrialRow& row);
/// @throws InputError for a table without one of the columns: another schema; or a cell that is not a number. All
/// columns of segments may be missing, and those of the basis.
std::vector<TrialRow> read_trials(const CsvTable& table);

}  // namespace simsync
