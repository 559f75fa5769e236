#include "validate/cases.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "base/parse_units.hpp"

namespace simsync {
namespace {

[[noreturn]] void fail(const Study& study, std::size_t row, const std::string& message, const std::string& help = {}) {
  study.table.refuse(row, message, help);
}

MappedValue value_of(const Study& study, const Field& field, std::size_t row) {
  if (field.column.empty()) return field.constant;
  const std::string& text = study.table.cell(row, field.column);
  MappedValue out{text, {}};
  if (!field.values.empty()) {
    const auto found = field.values.find(text);
    if (found == field.values.end()) {
      std::vector<std::string> known;
      for (const auto& [name, value] : field.values) known.push_back(name);
      std::string help = did_you_mean(text, known);
      if (help.empty()) help = "add it there, or leave the row out with 'rows'";
      fail(study, row,
           fmt::format("column '{}' says '{}', which {}.values of {} does not translate", field.column, text, field.key,
                       study.file),
           help);
    }
    out = found->second;
  }
  if (out.name.empty()) fail(study, row, fmt::format("column '{}' is empty", field.column));
  out.settings.insert(out.settings.end(), field.constant.settings.begin(), field.constant.settings.end());
  return out;
}

std::int64_t count_of(const Study& study, const Field& field, std::size_t row, std::int64_t most) {
  const std::string text = value_of(study, field, row).name;
  const auto number = parse_integer(text);
  if (!number || *number < 1 || *number > most)
    fail(study, row, fmt::format("{}: expected a whole number from 1 to {}, got '{}'", field.key, most, text));
  return *number;
}

int workers_of(const Study& study, std::size_t row) {
  constexpr std::int64_t kMost = 1 << 20;
  return static_cast<int>(count_of(study, study.workers, row, kMost));
}

std::int64_t batch_of(const Study& study, std::size_t row) {
  return count_of(study, study.batch, row, std::numeric_limits<std::int32_t>::max());
}

/// A name with '/' is a file; relative ones start at the folder of the study.
std::string resolved(const Study& study, const std::string& name) {
  if (name.find('/') == std::string::npos) return name;
  return (std::filesystem::path(study.file).parent_path() / name).lexically_normal().string();
}

/// What a case would take its step from, beside it or beside another row of the same kind.
[[noreturn]] void fail_calibrating(const Study& study, std::size_t row, std::size_t calibrating,
                                   const std::string& why) {
  fail(study, row,
       fmt::format("calibrate.step_time takes its step from {}:{}, {}", study.table.file(),
                   study.table.line(calibrating), why),
       "add a column to 'key', or narrow 'where'");
}

[[noreturn]] void fail_without_step(const Study& study, std::size_t row) {
  std::string key;
  for (const auto& column : study.step_time->key)
    key += fmt::format("{}{}={}", key.empty() ? "" : ", ", column, study.table.cell(row, column));
  fail(study, row, fmt::format("no row of calibrate.step_time has {}", key),
       "leave the row out with 'rows', or add its single-device measurement");
}

bool agree(const Study& study, const std::vector<std::string>& columns, std::size_t a, std::size_t b) {
  return std::all_of(columns.begin(), columns.end(), [&](const std::string& column) {
    return study.table.cell(a, column) == study.table.cell(b, column);
  });
}

/// The mean measured step of the calibrating rows that agree with `row`, as a setting. They must be repetitions.
std::string step_time_for(const Study& study, std::size_t row) {
  constexpr double kMostApart = 1.1;
  const StepTimeRule& rule = *study.step_time;
  double sum = 0.0;
  double least = std::numeric_limits<double>::infinity();
  double most = 0.0;
  int found = 0;
  for (std::size_t other = 0; other < study.table.size(); ++other) {
    if (!rule.rows.takes(study.table, other) || !agree(study, rule.key, other, row)) continue;
    if (batch_of(study, other) != batch_of(study, row))
      fail_calibrating(study, row, other, fmt::format("which has a batch of {}", batch_of(study, other)));
    const double step = measured_step(study, other, workers_of(study, other), batch_of(study, other)).value();
    least = std::min(least, step);
    most = std::max(most, step);
    if (most > kMostApart * least)
      fail_calibrating(study, row, other,
                       fmt::format("which takes {} where another of the same 'key' takes {}",
                                   format_seconds(Seconds{step}), format_seconds(Seconds{step < most ? most : least})));
    sum += step;
    ++found;
  }
  if (found == 0) fail_without_step(study, row);
  return format_number(sum / found) + "s";
}

/// The one row whose whole step says what the compute of `row` is.
std::size_t whole_step_row(const Study& study, std::size_t row) {
  const StepTimeRule& rule = *study.step_time;
  std::optional<std::size_t> found;
  for (std::size_t other = 0; other < study.table.size(); ++other) {
    if (!rule.rows.takes(study.table, other) || !agree(study, rule.key, other, row)) continue;
    if (!study.rows.takes(study.table, other)) fail_calibrating(study, row, other, "which 'rows' leaves out");
    if (batch_of(study, other) != batch_of(study, row))
      fail_calibrating(study, row, other, fmt::format("which has a batch of {}", batch_of(study, other)));
    if (found)
      fail_calibrating(study, row, other,
                       fmt::format("and from {}: of whole steps there may be one", study.table.line(*found)));
    found = other;
  }
  if (!found) fail_without_step(study, row);
  return *found;
}

void add(const Settings& more, bool for_strategy, std::vector<CaseSetting>& out) {
  for (const auto& [key, value] : more) out.push_back({key, value, for_strategy});
}

void add_settings(const Study& study, std::size_t row, std::vector<CaseSetting>& out) {
  for (const auto& rule : study.settings) {
    if (!rule.rows.takes(study.table, row)) continue;
    const bool for_strategy = is_for_strategy(study, rule);
    add(rule.fixed, for_strategy, out);
    if (rule.column.empty()) continue;
    const std::string& value = study.table.cell(row, rule.column);
    if (rule.key.empty()) {
      const auto more = parse_settings_text(value);
      if (!more)
        fail(study, row, fmt::format("column '{}': expected key=value;key=value, got '{}'", rule.column, value));
      add(*more, for_strategy, out);
      continue;
    }
    if (value.empty())
      fail(study, row, fmt::format("column '{}' is empty, and '{}' is set from it", rule.column, rule.key));
    out.push_back({rule.key, value, for_strategy});
  }
}

/// Its path starts at the folder of the study, also without a '/': there are no calibrations known by name.
void add_calibration(const Study& study, std::size_t row, PredictRequest& request, std::vector<CaseSetting>& out) {
  if (!study.calibration) return;
  const MappedValue found = value_of(study, *study.calibration, row);
  add(found.settings, is_for_strategy(study, *study.calibration), out);
  if (found.name == "none") return;
  request.calibration = (std::filesystem::path(study.file).parent_path() / found.name).lexically_normal().string();
}

bool calibrates(const Study& study, std::size_t row) {
  if (study.step_time && study.step_time->rows.takes(study.table, row)) return true;
  for (const auto& group : study.fits) {
    if (!group.rows.takes(study.table, row) || !study.uses(group)) continue;
    if (group.leave_out.empty() || !group.is_set_for(study.table, row)) return true;
  }
  return false;
}

void set_role(const Study& study, Case& c) {
  if (calibrates(study, c.row)) {
    c.role = CaseRole::Calibration;
    return;
  }
  for (const auto& rule : study.deviations) {
    if (!rule.rows.takes(study.table, c.row)) continue;
    c.role = rule.scored ? CaseRole::Scored : CaseRole::Deviation;
    c.entry = rule.entry;
    c.beyond_pct = rule.beyond_pct;
    return;
  }
}

Case case_of(const Study& study, std::size_t row) {
  Case c;
  c.row = row;
  c.id = study.id_of(row);
  const MappedValue model = value_of(study, study.model, row);
  const MappedValue cluster = value_of(study, study.cluster, row);
  const MappedValue strategy = value_of(study, study.strategy, row);
  c.request.model = resolved(study, model.name);
  c.request.cluster = resolved(study, cluster.name);
  c.request.strategy = resolved(study, strategy.name);
  c.request.workers = workers_of(study, row);
  c.request.batch = batch_of(study, row);
  std::vector<CaseSetting> settings;
  add_settings(study, row, settings);
  for (const auto* part : {&model, &cluster, &strategy}) add(part->settings, part == &strategy, settings);
  add_calibration(study, row, c.request, settings);
  if (study.step_time && study.step_time->whole_step)
    c.whole_step_row = whole_step_row(study, row);
  else if (study.step_time)
    settings.push_back({"step_time", step_time_for(study, row)});
  for (const auto& setting : settings) c.request.settings.emplace_back(setting.key, setting.value);
  c.measured = measured_step(study, row, c.request.workers, *c.request.batch);
  for (const auto& column : study.rank_within) c.rank_group += study.table.cell(row, column) + '\n';
  if (study.rank_within.empty()) c.rank_group = fmt::format("{}\n{}", c.request.model, *c.request.batch);
  c.workload = workload_of(study, row, c.request, settings);
  // Strategies whose compute follows from steps of their own are not told apart by their predictions alone.
  if (c.whole_step_row) c.workload.compute += fmt::format("of row {}\n", *c.whole_step_row);
  c.strategy = strategy_of(study, row, c.request, settings);
  set_role(study, c);
  return c;
}

}  // namespace

const char* name_of(CaseRole role) {
  switch (role) {
    case CaseRole::Scored:
      return "scored";
    case CaseRole::Calibration:
      return "calibration";
    case CaseRole::Deviation:
      break;
  }
  return "deviation";
}

Seconds measured_step(const Study& study, std::size_t row, int workers, std::int64_t batch) {
  const auto value = study.table.number(row, study.measured.column);
  if (!value || !(*value > 0.0))
    fail(study, row,
         fmt::format("column '{}': expected a measured value greater than 0, got '{}'", study.measured.column,
                     study.table.cell(row, study.measured.column)));
  const auto samples = static_cast<double>(batch);
  switch (study.measured.unit) {
    case MeasuredUnit::SamplesPerSecond:
      return Seconds{samples * workers / *value};
    case MeasuredUnit::SamplesPerSecondPerWorker:
      return Seconds{samples / *value};
    case MeasuredUnit::StepMilliseconds:
      return Seconds{*value * 1e-3};
    case MeasuredUnit::StepSeconds:
      break;
  }
  return Seconds{*value};
}

std::vector<Case> cases_of(const Study& study) {
  std::vector<Case> out;
  for (std::size_t row = 0; row < study.table.size(); ++row) {
    if (study.rows.takes(study.table, row)) out.push_back(case_of(study, row));
  }
  if (out.empty()) throw InputError(fmt::format("{}: no row of {} is selected", study.file, study.table.file()));
  return out;
}

std::set<std::size_t> rows_named(const Study& study, const std::vector<Case>& cases,
                                 const std::vector<std::string>& names) {
  std::set<std::size_t> out;
  std::vector<std::string> known;
  for (const auto& c : cases) known.push_back(c.id);
  for (const auto& c : cases) {
    if (names.empty()) out.insert(c.row);
  }
  for (const auto& name : names) {
    bool any = false;
    for (const auto& c : cases) {
      if (c.id != name && ::fnmatch(name.c_str(), c.id.c_str(), 0) != 0) continue;
      out.insert(c.row);
      any = true;
    }
    if (!any) throw InputError(fmt::format("study '{}' has no case '{}'", study.name, name), did_you_mean(name, known));
  }
  return out;
}

}  // namespace simsync
