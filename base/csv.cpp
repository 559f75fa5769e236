#include "base/csv.hpp"

#include <fmt/format.h>

#include "base/file.hpp"
#include "base/parse_units.hpp"

namespace simsync {
namespace {

[[noreturn]] void fail(const std::string& file, int line, const std::string& message, const std::string& help = {}) {
  throw InputError(Diagnostic{
      .origin = {file, line, 1}, .message = message, .key = {}, .source_line = {}, .note = {}, .help = help});
}

/// Splits text into records; the only state is whether a quote is open.
class Splitter {
public:
  Splitter(const std::string& text, const std::string& file) : text_(text), file_(file) {}

  bool next(std::vector<std::string>& cells, int& line) {
    cells.clear();
    if (at_ >= text_.size()) return false;
    line = line_;
    cells.emplace_back();
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"') {
        quoted(cells.back());
      } else if (c == ',') {
        cells.emplace_back();
      } else if (c == '\n') {
        ++line_;
        return true;
      } else if (c != '\r') {
        cells.back() += c;
      }
    }
    return true;
  }

private:
  void quoted(std::string& cell) {
    const int opened = line_;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '\n') ++line_;
      if (c != '"') {
        cell += c;
      } else if (at_ < text_.size() && text_[at_] == '"') {
        cell += '"';
        ++at_;
      } else {
        return;
      }
    }
    fail(file_, opened, "a quote is opened and never closed");
  }

  const std::string& text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

CsvTable CsvTable::load(const std::string& path) {
  return parse(read_file(path), path);
}

CsvTable CsvTable::parse(const std::string& text, const std::string& name) {
  CsvTable table;
  table.file_ = name;
  Splitter splitter(text, name);
  std::vector<std::string> cells;
  int line = 1;
  if (!splitter.next(table.header_, line)) fail(name, 1, "expected a header line, got an empty file");
  for (std::size_t i = 0; i < table.header_.size(); ++i) {
    if (!table.index_.emplace(table.header_[i], i).second)
      fail(name, 1, fmt::format("duplicate column '{}'", table.header_[i]));
  }
  while (splitter.next(cells, line)) {
    if (cells.size() == 1 && cells.front().empty()) continue;  // a blank line
    if (cells.size() != table.header_.size())
      fail(name, line,
           fmt::format("expected {} cell{} as in the header, got {}", table.header_.size(),
                       table.header_.size() == 1 ? "" : "s", cells.size()));
    table.rows_.push_back(cells);
    table.lines_.push_back(line);
  }
  return table;
}

const std::string& CsvTable::cell(std::size_t row, const std::string& column) const {
  const auto found = index_.find(column);
  if (found == index_.end()) {
    std::string help = did_you_mean(column, header_);
    if (help.empty()) help = fmt::format("columns: {}", fmt::join(header_, ", "));
    fail(file_, 1, fmt::format("no column '{}'", column), help);
  }
  return rows_.at(row)[found->second];
}

std::optional<double> CsvTable::number(std::size_t row, const std::string& column) const {
  const std::string& text = cell(row, column);
  if (text.empty()) return std::nullopt;
  const auto value = parse_number(text);
  if (!value) fail(file_, lines_.at(row), fmt::format("column '{}': expected a number, got '{}'", column, text));
  return value;
}

void CsvTable::refuse(std::size_t row, const std::string& message, const std::string& help) const {
  throw InputError(Diagnostic{
      .origin = {file_, line(row), 1}, .message = message, .key = {}, .source_line = {}, .note = {}, .help = help});
}

std::string csv_row(const std::vector<std::string>& cells) {
  std::string out;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) out += ',';
    if (cells[i].find_first_of(",\"\r\n") == std::string::npos) {
      out += cells[i];
      continue;
    }
    out += '"';
    for (const char c : cells[i]) out += c == '"' ? std::string{"\"\""} : std::string(1, c);
    out += '"';
  }
  return out;
}

}  // namespace simsync
