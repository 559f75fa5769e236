// The strict reader of studies; the format is in validate/README.md.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/file.hpp"
#include "base/yaml.hpp"
#include "validate/study.hpp"

namespace simsync {
namespace {

constexpr std::size_t kMaxParametersPerGroup = 3;

/// Reads one study; holds the table whose columns every part refers to.
class StudyReader {
public:
  explicit StudyReader(Study& study) : study_(study) {}
  void read(const yaml::Node& root);

private:
  bool read_table(const yaml::Node& reference);
  std::string column(const yaml::Node& node) const;
  std::vector<std::string> columns(const yaml::Node& node) const;
  std::vector<RowFilter::Condition> conditions(const yaml::Node& node) const;
  RowFilter filter(const yaml::Node& node) const;
  void filter_keys(yaml::Mapping& m, RowFilter& rows) const;
  /// Adds to the notes of the study, once for each filter.
  void note_without_rows(const yaml::Node& node, const RowFilter& rows) const;
  void note_absent_values(const yaml::Node& values, const std::string& column) const;
  void read_rows(const yaml::Node& node);
  Settings settings(const yaml::Node& node) const;
  MappedValue mapped(const yaml::Node& node) const;
  Field field(const yaml::Node& node) const;
  void read_case(const yaml::Node& node);
  void expect_unique_ids(const yaml::Node& node) const;
  void read_measured(const yaml::Node& node);
  SettingRule setting_rule(const yaml::Node& node) const;
  void read_calibrate(const yaml::Node& node);
  StepTimeRule step_time(const yaml::Node& node) const;
  FitGroup fit_group(const yaml::Node& node) const;
  FitParameter fit_parameter(const yaml::Node& node) const;
  void read_tolerance(const yaml::Node& node);
  DeviationRule deviation(const yaml::Node& node) const;

  Study& study_;
};

/// Scalars are taken as text whatever they look like, so that `8` and `a` filter alike.
std::vector<std::string> texts(const yaml::Node& node) {
  if (!node) return {};
  if (!node.is_sequence()) return {node.text()};
  std::vector<std::string> out;
  for (const auto& item : node.items()) out.push_back(item.text());
  if (out.empty()) node.fail("expected at least one value, got an empty list");
  return out;
}

std::string StudyReader::column(const yaml::Node& node) const {
  if (!node) return {};
  std::string name = node.text();
  if (name.empty() || study_.table.has(name)) return name;
  std::string help = did_you_mean(name, study_.table.header());
  if (help.empty()) help = fmt::format("columns: {}", fmt::join(study_.table.header(), ", "));
  node.fail(fmt::format("no column '{}' in {}", name, study_.table.file()), help);
  return study_.table.header().front();
}

std::vector<std::string> StudyReader::columns(const yaml::Node& node) const {
  std::vector<std::string> out;
  if (!node) return out;
  for (const auto& item : node.items()) out.push_back(column(item));
  if (node.is_sequence() && out.empty()) node.fail("expected at least one column, got an empty list");
  return out;
}

std::vector<RowFilter::Condition> StudyReader::conditions(const yaml::Node& node) const {
  std::vector<RowFilter::Condition> out;
  for (const auto& [name, values] : node.entries()) {
    if (!study_.table.has(name)) {
      std::string help = did_you_mean(name, study_.table.header());
      if (help.empty()) help = fmt::format("columns: {}", fmt::join(study_.table.header(), ", "));
      values.fail(fmt::format("no column '{}' in {}", name, study_.table.file()), help);
      continue;
    }
    out.push_back({name, texts(values)});
    if (values.is_sequence()) note_absent_values(values, name);
  }
  return out;
}

void StudyReader::note_absent_values(const yaml::Node& values, const std::string& column) const {
  std::set<std::string> known;
  for (std::size_t row = 0; row < study_.table.size(); ++row) known.insert(study_.table.cell(row, column));
  if (values.items().size() < 2) return;  // the filter then passes no row, which is said of it
  for (const auto& value : values.items()) {
    if (known.contains(value.text())) continue;
    const Origin at = value.origin();
    study_.notes.push_back(fmt::format("{}:{}:{}: note: no row of {} has '{}' in column '{}'", at.file, at.line,
                                       at.column, study_.table.file(), value.text(), column));
  }
}

bool has_rows(const RowFilter& rows, const CsvTable& table) {
  for (std::size_t row = 0; row < table.size(); ++row) {
    if (rows.takes(table, row)) return true;
  }
  return false;
}

void StudyReader::note_without_rows(const yaml::Node& node, const RowFilter& rows) const {
  if (!node || has_rows(rows, study_.table)) return;
  const Origin at = node.origin();
  study_.notes.push_back(fmt::format("{}:{}:{}: note: no row of {} passes the filter of {}", at.file, at.line,
                                     at.column, study_.table.file(), node.key_path()));
}

void StudyReader::filter_keys(yaml::Mapping& m, RowFilter& rows) const {
  m.maybe("where", [&](const yaml::Node& n) { rows.where = conditions(n); });
  m.maybe("except", [&](const yaml::Node& n) { rows.except = conditions(n); });
}

RowFilter StudyReader::filter(const yaml::Node& node) const {
  RowFilter rows;
  if (!node) return rows;
  auto m = node.mapping();
  filter_keys(m, rows);
  note_without_rows(node, rows);
  return rows;
}

void StudyReader::read_rows(const yaml::Node& node) {
  auto m = node.mapping();
  filter_keys(m, study_.rows);
  if (!has_rows(study_.rows, study_.table))
    node.fail(fmt::format("no row of {} passes this filter", study_.table.file()));
}

Settings StudyReader::settings(const yaml::Node& node) const {
  Settings out;
  for (const auto& [key, value] : node.entries()) out.emplace_back(key, value.text());
  return out;
}

MappedValue StudyReader::mapped(const yaml::Node& node) const {
  MappedValue out;
  if (!node) return out;
  if (!node.is_mapping()) {
    out.name = node.text();
    return out;
  }
  auto m = node.mapping();
  out.name = m.require("name").text();
  m.maybe("set", [&](const yaml::Node& n) { out.settings = settings(n); });
  return out;
}

Field StudyReader::field(const yaml::Node& node) const {
  Field out;
  if (!node) return out;
  out.key = node.key_path();
  if (!node.is_mapping()) {
    out.constant = mapped(node);
    return out;
  }
  auto m = node.mapping();
  const yaml::Node name = m.optional("name");
  const yaml::Node from = m.optional("column");
  if (static_cast<bool>(name) == static_cast<bool>(from)) {
    node.fail("expected either 'column' or 'name'");
  }
  out.column = column(from);
  if (name) out.constant.name = name.text();
  m.maybe("set", [&](const yaml::Node& n) { out.constant.settings = settings(n); });
  m.maybe("values", [&](const yaml::Node& n) {
    if (!from) n.fail("'values' translates a column; there is none here");
    for (const auto& [text, value] : n.entries()) out.values.emplace(text, mapped(value));
  });
  return out;
}

void StudyReader::expect_unique_ids(const yaml::Node& node) const {
  for (const auto& column : study_.id_columns) {
    if (study_.table.has(column)) continue;
    node.fail(
        fmt::format("no column '{}' in {}: say with 'id: <column>' what names a row", column, study_.table.file()));
    return;
  }
  if (study_.id_columns.empty()) return;  // told where it stands
  std::set<std::string> seen;
  for (std::size_t row = 0; row < study_.table.size(); ++row) {
    const std::string id = study_.id_of(row);
    if (!seen.insert(id).second)
      node.fail(fmt::format("{}:{} repeats the id '{}'", study_.table.file(), study_.table.line(row), id));
  }
}

void StudyReader::read_case(const yaml::Node& node) {
  if (!node) return;
  auto m = node.mapping();
  m.maybe("id", [&](const yaml::Node& n) {
    study_.id_columns = n.is_sequence() ? columns(n) : std::vector<std::string>{column(n)};
  });
  study_.model = field(m.require("model"));
  expect_unique_ids(node);
  study_.cluster = field(m.require("cluster"));
  study_.strategy = field(m.require("strategy"));
  study_.workers = field(m.require("workers"));
  study_.batch = field(m.require("batch"));
  m.maybe("calibration", [&](const yaml::Node& n) { study_.calibration = field(n); });
}

void StudyReader::read_measured(const yaml::Node& node) {
  if (!node) return;
  auto m = node.mapping();
  study_.measured.column = column(m.require("column"));
  study_.measured.unit = m.require("unit").one_of<MeasuredUnit>({
      {"samples_per_s", MeasuredUnit::SamplesPerSecond},
      {"samples_per_s_per_worker", MeasuredUnit::SamplesPerSecondPerWorker},
      {"s", MeasuredUnit::StepSeconds},
      {"ms", MeasuredUnit::StepMilliseconds},
  });
  m.maybe("error_pct", [&](const yaml::Node& n) { study_.measured.error_pct = n.number({0.0, 50.0}); });
}

SettingRule StudyReader::setting_rule(const yaml::Node& node) const {
  SettingRule rule;
  auto m = node.mapping();
  filter_keys(m, rule.rows);
  note_without_rows(node, rule.rows);
  const yaml::Node set = m.optional("set");
  const yaml::Node key = m.optional("key");
  const yaml::Node from = m.optional("column");
  if (static_cast<bool>(set) == static_cast<bool>(from) || (key && !from))
    node.fail("expected 'set', 'column' (of key=value;key=value), or 'key' with 'column'");
  if (set) rule.fixed = settings(set);
  if (key) rule.key = key.text();
  rule.column = column(from);
  return rule;
}

StepTimeRule StudyReader::step_time(const yaml::Node& node) const {
  StepTimeRule rule;
  auto m = node.mapping();
  filter_keys(m, rule.rows);
  note_without_rows(node, rule.rows);
  rule.key = columns(m.require("key"));
  m.maybe("of", [&](const yaml::Node& n) { rule.whole_step = n.one_of<bool>({{"compute", false}, {"step", true}}); });
  return rule;
}

FitParameter StudyReader::fit_parameter(const yaml::Node& node) const {
  FitParameter p;
  p.origin = node.origin();
  auto m = node.mapping();
  p.key = m.require("key").text();
  filter_keys(m, p.rows);
  note_without_rows(node, p.rows);
  const yaml::Node low = m.require("low");
  const yaml::Node high = m.require("high");
  if (!low || !high) return p;
  const auto from = parse_scaled(low.text());
  const auto to = parse_scaled(high.text());
  const std::string expected = "expected a number, time, size or bandwidth such as 0.5, 20us, 64KiB or 8Gbps, got '{}'";
  if (!from) low.fail(fmt::format(fmt::runtime(expected), low.text()));
  if (!to) high.fail(fmt::format(fmt::runtime(expected), high.text()));
  if (!from || !to) return p;
  if (from->dimension != to->dimension) {
    high.fail("'low' and 'high' must have the same kind of unit");
  } else if (!(from->value < to->value)) {
    high.fail("'high' must be greater than 'low'");
  }
  p.low = from->value;
  p.high = to->value;
  p.scale = {from->dimension, from->value > 0.0};
  return p;
}

FitGroup StudyReader::fit_group(const yaml::Node& node) const {
  FitGroup group;
  group.origin = node.origin();
  group.key_path = node.key_path();
  auto m = node.mapping();
  const yaml::Node list = m.require("parameters");
  for (const auto& item : list.items()) group.parameters.push_back(fit_parameter(item));
  if (list && (group.parameters.empty() || group.parameters.size() > kMaxParametersPerGroup))
    list.fail(fmt::format("expected 1 to {} parameters, got {}", kMaxParametersPerGroup, group.parameters.size()));
  group.rows = filter(m.require("rows"));
  m.maybe("leave_out", [&](const yaml::Node& n) { group.leave_out = column(n); });
  m.maybe("each", [&](const yaml::Node& n) {
    for (const auto& item : n.items()) group.each.push_back(column(item));
    if (!group.leave_out.empty()) n.fail("'each' and 'leave_out' exclude each other");
  });
  m.maybe("by", [&](const yaml::Node& n) {
    group.saturated = n.one_of<bool>({{"replay", false}, {"saturation", true}});
  });
  return group;
}

void StudyReader::read_calibrate(const yaml::Node& node) {
  auto m = node.mapping();
  m.maybe("step_time", [&](const yaml::Node& n) { study_.step_time = step_time(n); });
  m.maybe("fit", [&](const yaml::Node& n) {
    for (const auto& item : n.items()) study_.fits.push_back(fit_group(item));
  });
}

void StudyReader::read_tolerance(const yaml::Node& node) {
  if (!node) return;
  auto m = node.mapping();
  study_.tolerance.mape_pct = m.require("mape_pct").number({0.0, 1000.0});
  m.maybe("pairwise_accuracy",
          [&](const yaml::Node& n) { study_.tolerance.pairwise_accuracy = n.number(yaml::kFraction); });
}

DeviationRule StudyReader::deviation(const yaml::Node& node) const {
  DeviationRule rule;
  auto m = node.mapping();
  rule.entry = m.require("entry").text();
  filter_keys(m, rule.rows);
  if (rule.rows.where.empty()) node.fail("expected 'where': a deviation must name its rows");
  note_without_rows(node, rule.rows);
  m.maybe("beyond_pct", [&](const yaml::Node& n) { rule.beyond_pct = n.number({0.0, 1000.0}); });
  m.maybe("scored", [&](const yaml::Node& n) { rule.scored = n.boolean(); });
  return rule;
}

bool StudyReader::read_table(const yaml::Node& reference) {
  if (!reference) return false;
  const auto folder = std::filesystem::path(study_.file).parent_path();
  const std::string path = (folder / reference.text()).lexically_normal().string();
  std::error_code unreadable;
  if (!std::filesystem::is_regular_file(path, unreadable)) {
    reference.fail(fmt::format("no such file: {}", path), "the path starts at the folder of the study");
    return false;
  }
  study_.table = CsvTable::load(path);
  if (study_.table.size() == 0) reference.fail(fmt::format("{} has no rows", path));
  return study_.table.size() > 0;
}

void StudyReader::read(const yaml::Node& root) {
  auto m = root.mapping();
  (void)m.require("schema").choice({"simsync/study/v1"});
  study_.name = m.require("name").text();
  m.maybe("description", [&](const yaml::Node& n) { study_.description = n.text(); });
  const yaml::Node reference = m.require("reference");
  if (!read_table(reference)) {  // nothing else can be read without the table; the keys are not unknown, though
    for (const char* key :
         {"case", "measured", "rows", "settings", "calibrate", "tolerance", "deviations", "rank_within"})
      (void)m.optional(key);
    return;
  }
  read_case(m.require("case"));
  read_measured(m.require("measured"));
  m.maybe("rows", [&](const yaml::Node& n) { read_rows(n); });
  m.maybe("settings", [&](const yaml::Node& n) {
    for (const auto& item : n.items()) study_.settings.push_back(setting_rule(item));
  });
  m.maybe("calibrate", [&](const yaml::Node& n) { read_calibrate(n); });
  read_tolerance(m.require("tolerance"));
  m.maybe("deviations", [&](const yaml::Node& n) {
    for (const auto& item : n.items()) study_.deviations.push_back(deviation(item));
  });
  m.maybe("rank_within", [&](const yaml::Node& n) { study_.rank_within = columns(n); });
}

}  // namespace

Study parse_study(const std::string& text, const std::string& path) {
  const auto document = yaml::Document::parse(text, path);
  Study study;
  study.file = path;
  StudyReader(study).read(document.root());
  document.finish();
  return study;
}

}  // namespace simsync
