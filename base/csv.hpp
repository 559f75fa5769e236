// Comma-separated tables: one header line, one observation per row, no comments.
#pragma once
#include <iosfwd>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.hpp"

namespace simsync {

/// A table held in memory. Cells are text; numbers are read on demand.
class CsvTable {
public:
  /// RFC 4180 with quoted cells. @throws InputError on a ragged row, an open quote or a duplicate header.
  static CsvTable load(const std::string& path);
  static CsvTable parse(const std::string& text, const std::string& name);

  [[nodiscard]] const std::vector<std::string>& header() const { return header_; }
  [[nodiscard]] std::size_t size() const { return rows_.size(); }
  [[nodiscard]] bool has(const std::string& column) const { return index_.contains(column); }
  /// @throws InputError naming the closest column when there is none.
  [[nodiscard]] const std::string& cell(std::size_t row, const std::string& column) const;
  /// The cell as a number; nullopt when it is empty. @throws InputError when it is not a number.
  [[nodiscard]] std::optional<double> number(std::size_t row, const std::string& column) const;
  [[nodiscard]] const std::string& file() const { return file_; }
  /// The line of the file on which `row` begins, counting from 1.
  [[nodiscard]] int line(std::size_t row) const { return lines_[row]; }
  /// @throws InputError always: what is wrong with the row, and what would mend it.
  [[noreturn]] void refuse(std::size_t row, const std::string& message, const std::string& help = {}) const;

private:
  std::string file_;
  std::vector<std::string> header_;
  std::unordered_map<std::string, std::size_t> index_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<int> lines_;
};

/// One row of cells with the quotes that they need.
std::string csv_row(const std::vector<std::string>& cells);

}  // namespace simsync
