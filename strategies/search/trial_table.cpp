#include "strategies/search/trial_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/parse_units.hpp"
#include "strategies/search/features.hpp"

namespace simsync {
namespace {

std::string exact(Seconds time) {
  return fmt::format("{:.17g}", time.value());
}

std::string exact(const std::optional<Seconds>& time) {
  return time ? exact(*time) : std::string{};
}

const std::vector<std::string>& basis_columns() {
  static const std::vector<std::string> kColumns{"settings", "calibration", "runner"};
  return kColumns;
}

double needed(const CsvTable& table, std::size_t row, const std::string& column) {
  const auto value = table.number(row, column);
  if (!value) table.refuse(row, fmt::format("'{}' is empty", column), "trials have a number there");
  return *value;
}

std::optional<Seconds> time_of(const CsvTable& table, std::size_t row, const std::string& column) {
  const auto value = table.number(row, column);
  if (!value) return std::nullopt;
  if (!(*value > 0.0)) table.refuse(row, fmt::format("'{}' is not positive", column));
  return Seconds{*value};
}

}  // namespace

TrialDomain domain_of(const TrialRow& row) {
  return {row.model, row.cluster, row.workers, row.batch, row.evaluator};
}

TrialRow trial_row(const Candidate& candidate, const SearchTarget& target, std::int64_t samples) {
  TrialRow out;
  out.origin = candidate.origin;
  out.strategy_id = candidate.id;
  out.schedule = word_for(schedule_words(), schedule_of(candidate.strategy));
  out.estimated = candidate.estimate.step;
  out.bound = candidate.estimate.bound;
  out.replayed = candidate.replayed;
  out.model = target.model.name();
  out.cluster = target.cluster.name;
  out.workers = target.workers;
  out.batch = samples;
  out.shards = shards_of(candidate.strategy);
  out.autosync = autosync_features(candidate.strategy, target, samples);
  out.features = candidate.features;
  out.segments = segment_features(candidate.strategy, target, samples);
  return out;
}

const std::vector<std::string>& trial_header() {
  static const std::vector<std::string> kHeader = [] {
    std::vector<std::string> out{"trial",
                                 "round",
                                 "origin",
                                 "strategy_id",
                                 "schedule",
                                 "step_time_s",
                                 "estimated_step_time_s",
                                 "bound_s",
                                 "replayed_step_time_s",
                                 "model",
                                 "cluster",
                                 "workers",
                                 "batch_per_worker",
                                 "evaluator",
                                 "shards"};
    for (const FeatureSchema* schema : {&autosync_schema(), &strategy_schema(), &segment_schema()})
      out.insert(out.end(), schema->names.begin(), schema->names.end());
    out.insert(out.end(), basis_columns().begin(), basis_columns().end());
    return out;
  }();
  return kHeader;
}

std::vector<std::string> oldest_trial_header() {
  std::vector<std::string> out = trial_header();
  out.resize(out.size() - segment_schema().names.size() - basis_columns().size());
  return out;
}

std::vector<std::string> trial_cells(const TrialRow& row) {
  std::vector<std::string> out{std::to_string(row.trial),
                               std::to_string(row.round),
                               row.origin,
                               row.strategy_id,
                               row.schedule,
                               exact(row.step),
                               exact(row.estimated),
                               exact(row.bound),
                               exact(row.replayed),
                               row.model,
                               row.cluster,
                               std::to_string(row.workers),
                               std::to_string(row.batch),
                               row.evaluator,
                               format_number(row.shards)};
  for (const auto* values : {&row.autosync, &row.features, &row.segments})
    for (const double value : *values) out.push_back(format_number(value));
  const TrialBasis basis = row.basis.value_or(TrialBasis{});
  out.insert(out.end(), {basis.settings, basis.calibration, basis.runner});
  return out;
}

std::vector<TrialRow> read_trials(const CsvTable& table) {
  const bool has_segments = table.has(segment_schema().names.front());
  const bool has_basis = std::all_of(basis_columns().begin(), basis_columns().end(),
                                     [&](const std::string& column) { return table.has(column); });
  std::vector<TrialRow> out;
  for (std::size_t i = 0; i < table.size(); ++i) {
    TrialRow row{.trial = static_cast<int>(needed(table, i, "trial")),
                 .round = static_cast<int>(needed(table, i, "round")),
                 .origin = table.cell(i, "origin"),
                 .strategy_id = table.cell(i, "strategy_id"),
                 .schedule = table.cell(i, "schedule"),
                 .step = time_of(table, i, "step_time_s"),
                 .estimated = Seconds{needed(table, i, "estimated_step_time_s")},
                 .bound = Seconds{needed(table, i, "bound_s")},
                 .replayed = time_of(table, i, "replayed_step_time_s"),
                 .model = table.cell(i, "model"),
                 .cluster = table.cell(i, "cluster"),
                 .workers = static_cast<int>(needed(table, i, "workers")),
                 .batch = static_cast<std::int64_t>(needed(table, i, "batch_per_worker")),
                 .evaluator = table.cell(i, "evaluator"),
                 .shards = needed(table, i, "shards"),
                 .autosync = {},
                 .features = {},
                 .segments = {},
                 .basis = {}};
    for (const std::string& name : autosync_schema().names) row.autosync.push_back(needed(table, i, name));
    for (const std::string& name : strategy_schema().names) row.features.push_back(needed(table, i, name));
    if (has_segments)
      for (const std::string& name : segment_schema().names) row.segments.push_back(needed(table, i, name));
    if (has_basis)
      row.basis = {.settings = table.cell(i, "settings"),
                   .calibration = table.cell(i, "calibration"),
                   .runner = table.cell(i, "runner")};
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace simsync
