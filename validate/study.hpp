// A study: measured rows, how they map to predictions, which of them calibrate, and how close is close enough.
//
// Format and metrics: validate/README.md. Nothing about a study is compiled in.
#pragma once
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/csv.hpp"
#include "base/scale.hpp"
#include "base/units.hpp"

namespace simsync {

/// `key=value` pairs in the order of the file, as PredictRequest::settings takes them.
using Settings = std::vector<std::pair<std::string, std::string>>;

/// Which rows of the reference table are meant.
struct RowFilter {
  /// One column and the values it may have; texts are compared exactly.
  struct Condition {
    std::string column;
    std::vector<std::string> values;
  };
  std::vector<Condition> where;   ///< all must hold
  std::vector<Condition> except;  ///< a row for which any holds is left out
  [[nodiscard]] bool takes(const CsvTable& table, std::size_t row) const;
};

/// What one text of the table stands for.
struct MappedValue {
  std::string name;
  Settings settings;
};

/// A property of a case: the same for all rows, or read from a column and perhaps translated.
struct Field {
  std::string column;  ///< empty: `constant` serves every row
  MappedValue constant;
  std::map<std::string, MappedValue> values;  ///< empty: the cell's text is used as it is
  std::string key;                            ///< key path in the study, for messages
};

enum class MeasuredUnit { SamplesPerSecond, SamplesPerSecondPerWorker, StepSeconds, StepMilliseconds };

struct Measured {
  std::string column;
  MeasuredUnit unit = MeasuredUnit::StepSeconds;
  double error_pct = 1.0;  ///< stated error of one value; closer pairs are not ranked
};

/// What `--set` would say in the rows that it takes: `fixed`, or what `column` holds.
struct SettingRule {
  RowFilter rows;
  Settings fixed;
  std::string key;     ///< of the values in `column`; empty: its cells are settings_text
  std::string column;  ///< empty: none
};

/// Rows whose measured time becomes `step_time` of every case that agrees with them in `key`.
struct StepTimeRule {
  RowFilter rows;
  std::vector<std::string> key;  ///< columns
  /// False: the measured step is the workers' compute and nothing else. True: it is the row's whole step, and its
  /// compute is what makes the prediction of that row agree with it.
  bool whole_step = false;
};

struct FitParameter {
  std::string key;  ///< as set_parameter knows it
  Scale scale;
  double low = 0.0;
  double high = 0.0;
  RowFilter rows;  ///< cases that it is set for
  Origin origin;
};

/// Up to three parameters found together from the same rows. Groups are fitted in the order of the file.
struct FitGroup {
  std::vector<FitParameter> parameters;
  RowFilter rows;
  /// Column: the parameters are found once for each of its values, from the rows that have another one, and set for the
  /// cases that have it; not for values whose cases they are not set for. Empty: found once, from all rows.
  std::string leave_out;
  /// Columns: the parameters are found once for each combination of their cells, from the rows that have it, and set
  /// for the cases that have it. Empty: found once. Excludes `leave_out`.
  std::vector<std::string> each;
  /// Its rows are saturated: their workers wait for one resource all the time, and a step of each takes so many times
  /// what one takes of it. No replays.
  bool saturated = false;
  Origin origin;
  std::string key_path;

  /// Whether any of the parameters is.
  [[nodiscard]] bool is_set_for(const CsvTable& table, std::size_t row) const {
    return std::any_of(parameters.begin(), parameters.end(),
                       [&](const FitParameter& parameter) { return parameter.rows.takes(table, row); });
  }
};

struct Tolerance {
  double mape_pct = 0.0;
  std::optional<double> pairwise_accuracy;
};

/// Cases known to be wrong; one that comes within `beyond_pct` is a finding.
struct DeviationRule {
  RowFilter rows;
  std::string entry;  ///< heading of DEVIATIONS.md or any text that says why
  double beyond_pct = 10.0;
  bool scored = false;  ///< true: they count in the score like any other case
};

struct Study {
  std::string name;
  std::string description;
  std::string file;
  CsvTable table;
  std::vector<std::string> id_columns{"id"};  ///< together they name a row
  RowFilter rows;
  Field model, cluster, strategy, workers, batch;
  /// Of the cluster: a path from the folder of the study, or `none`.
  std::optional<Field> calibration;
  std::vector<SettingRule> settings;
  Measured measured;
  std::optional<StepTimeRule> step_time;
  std::vector<FitGroup> fits;
  Tolerance tolerance;
  std::vector<DeviationRule> deviations;
  std::vector<std::string> rank_within;  ///< columns; empty: pairs of equal model and batch
  /// Filters that no row passes, with their places. A study may be used with a part of its table.
  std::vector<std::string> notes;

  /// The cells of `id_columns`, joined by '-'.
  [[nodiscard]] std::string id_of(std::size_t row) const;
  /// Whether any case is one that the group's parameters are set for; if not, there is nothing to fit them for.
  [[nodiscard]] bool uses(const FitGroup& group) const;
};

/// Reads a study and its reference table. @throws InputError with every finding.
Study load_study(const std::string& path);
/// The same from text; `path` stands for the file in messages and relative paths start at its folder.
Study parse_study(const std::string& text, const std::string& path);
/// `name_or_path` as given to `simsync validate`. @throws InputError naming the closest known study.
Study find_study(const std::string& name_or_path);
/// Names of the built-in studies, sorted.
std::vector<std::string> known_studies();

}  // namespace simsync
