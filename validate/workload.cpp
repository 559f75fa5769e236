#include "validate/workload.hpp"

#include <fmt/format.h>

#include <map>

namespace simsync {
namespace {

bool is_option(const std::string& key) {
  return key.starts_with("strategy.");
}

/// The settings that are options of the strategy, or the others; of a key that is set twice the last one counts.
std::string settings_text(const PredictRequest& request, bool options) {
  std::map<std::string, std::string> last;
  for (const auto& [key, value] : request.settings) {
    if (is_option(key) == options) last[key] = value;
  }
  std::string out;
  for (const auto& [key, value] : last) out += fmt::format("{}={}\n", key, value);
  return out;
}

/// The filter without its conditions on `column`.
RowFilter without(RowFilter rows, const std::string& column) {
  const auto on_column = [&](const RowFilter::Condition& condition) { return condition.column == column; };
  std::erase_if(rows.where, on_column);
  std::erase_if(rows.except, on_column);
  return rows;
}

}  // namespace

std::string workload_of(const Study& study, const Case& c) {
  std::string out = fmt::format("{}\n{}\n{}\n{}\n{}\n{}", c.rank_group, c.request.model, c.request.cluster,
                                c.request.batch.value_or(0), c.request.workers, settings_text(c.request, false));
  if (study.step_time) {
    for (const auto& column : study.step_time->key) {
      if (column != study.strategy.column) out += study.table.cell(c.row, column) + '\n';
    }
  }
  for (const auto& group : study.fits) {
    for (const auto& parameter : group.parameters)
      out += without(parameter.rows, study.strategy.column).takes(study.table, c.row) ? '1' : '0';
  }
  return out;
}

std::string strategy_of(const PredictRequest& request) {
  return fmt::format("{}\n{}", request.strategy, settings_text(request, true));
}

}  // namespace simsync
