#include "validate/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace simsync {
namespace {

constexpr const char* kStepTime = "step_time";

bool is_option(const std::string& key) {
  return key.starts_with("strategy.");
}

bool is_of_cluster(const std::string& key) {
  return !is_option(key) && key.find('.') != std::string::npos;
}

std::string last_values(const std::vector<CaseSetting>& settings, bool of_strategy) {
  std::map<std::string, std::string> last;
  for (const auto& setting : settings) {
    if (setting.of_strategy() == of_strategy && setting.key != kStepTime) last[setting.key] = setting.value;
  }
  std::string out;
  for (const auto& [key, value] : last) out += fmt::format("{}={}\n", key, value);
  return out;
}

bool has_condition_on(const RowFilter& rows, const std::string& column) {
  const auto on_column = [&](const RowFilter::Condition& condition) { return condition.column == column; };
  return std::any_of(rows.where.begin(), rows.where.end(), on_column) ||
         std::any_of(rows.except.begin(), rows.except.end(), on_column);
}

/// The filter without its conditions on `column`.
RowFilter without(RowFilter rows, const std::string& column) {
  const auto on_column = [&](const RowFilter::Condition& condition) { return condition.column == column; };
  std::erase_if(rows.where, on_column);
  std::erase_if(rows.except, on_column);
  return rows;
}

/// Whether the rule sets a number of the cluster.
bool sets_cluster(const SettingRule& rule) {
  if (rule.fixed.empty()) return rule.key.empty() || is_of_cluster(rule.key);
  return std::any_of(rule.fixed.begin(), rule.fixed.end(),
                     [](const auto& setting) { return is_of_cluster(setting.first); });
}

}  // namespace

bool CaseSetting::of_strategy() const {
  return is_option(key) || (for_strategy && is_of_cluster(key));
}

bool is_for_strategy(const Study& study, const SettingRule& rule) {
  const std::string& column = study.strategy.column;
  return !column.empty() && (rule.column == column || has_condition_on(rule.rows, column));
}

bool is_for_strategy(const Study& study, const Field& field) {
  return !field.column.empty() && field.column == study.strategy.column;
}

Workload workload_of(const Study& study, std::size_t row, const PredictRequest& request,
                     const std::vector<CaseSetting>& settings) {
  Workload out;
  out.job = fmt::format("{}\n{}\n{}\n{}", request.model, request.cluster, request.batch.value_or(0), request.workers);
  out.settings = last_values(settings, false);
  if (study.calibration && !is_for_strategy(study, *study.calibration)) out.settings += request.calibration + '\n';
  const std::string& column = study.strategy.column;
  const auto takes = [&](const RowFilter& rows) { return without(rows, column).takes(study.table, row) ? '1' : '0'; };
  for (const auto& rule : study.settings) {
    if (is_for_strategy(study, rule) && sets_cluster(rule)) out.settings += takes(rule.rows);
  }
  for (const auto& setting : settings) {
    if (setting.key == kStepTime) out.compute = setting.value + '\n';
  }
  if (study.step_time) {
    for (const auto& key : study.step_time->key) {
      if (key != column) out.compute += study.table.cell(row, key) + '\n';
    }
  }
  for (const auto& group : study.fits) {
    for (const auto& parameter : group.parameters) out.fits += takes(parameter.rows);
  }
  return out;
}

std::string strategy_of(const Study& study, std::size_t row, const PredictRequest& request,
                        const std::vector<CaseSetting>& settings) {
  std::string out = fmt::format("{}\n{}", request.strategy, last_values(settings, true));
  if (study.calibration && is_for_strategy(study, *study.calibration)) out += request.calibration + '\n';
  for (const auto& group : study.fits) {
    for (const auto& parameter : group.parameters) {
      if (!has_condition_on(parameter.rows, study.strategy.column)) continue;
      out += parameter.rows.takes(study.table, row) ? '1' : '0';
    }
  }
  return out;
}

}  // namespace simsync
