#include "validate/study.hpp"

#include <algorithm>

#include "base/file.hpp"

namespace simsync {
namespace {

bool holds(const RowFilter::Condition& condition, const CsvTable& table, std::size_t row) {
  const std::string& cell = table.cell(row, condition.column);
  return std::find(condition.values.begin(), condition.values.end(), cell) != condition.values.end();
}

}  // namespace

bool RowFilter::takes(const CsvTable& table, std::size_t row) const {
  const auto here = [&](const Condition& condition) { return holds(condition, table, row); };
  return std::all_of(where.begin(), where.end(), here) && std::none_of(except.begin(), except.end(), here);
}

std::string Study::id_of(std::size_t row) const {
  std::string id;
  for (const auto& column : id_columns) id += (id.empty() ? "" : "-") + table.cell(row, column);
  return id;
}

bool Study::uses(const FitGroup& group) const {
  for (std::size_t row = 0; row < table.size(); ++row) {
    if (rows.takes(table, row) && group.is_set_for(table, row)) return true;
  }
  return false;
}

Study load_study(const std::string& path) {
  return parse_study(read_file(path), path);
}

Study find_study(const std::string& name_or_path) {
  return load_study(resolve_name(name_or_path, "validate/studies", ".yaml", "study"));
}

std::vector<std::string> known_studies() {
  return list_files(data_folder("validate/studies"), ".yaml");
}

}  // namespace simsync
