#include "cli/row_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <iostream>
#include <map>

#include "base/error.hpp"
#include "base/file.hpp"
#include "sim/problem/row_key.hpp"

namespace simsync {
namespace {

constexpr const char* kSettings = "settings";

[[noreturn]] void refuse(const CsvTable& found, std::size_t row, const std::string& message) {
  throw InputError(Diagnostic{.origin = {found.file(), found.line(row), 1},
                              .message = "--resume: " + message,
                              .key = {},
                              .source_line = {},
                              .note = {},
                              .help = "name another file, or begin this one anew without --resume"});
}

std::vector<std::string> key_of(const CsvTable& found, std::size_t row) {
  std::vector<std::string> key;
  for (const auto& column : key_columns()) key.push_back(found.cell(row, column));
  return key;
}

}  // namespace

RowFile::RowFile(const std::string& path, const std::string& header, bool resume)
    : path_(path), standard_output_(path == "-"), found_(CsvTable::parse(header + "\n", path)) {
  if (standard_output_) {
    append(header);
    return;
  }
  std::string kept = header + "\n";
  if (resume && std::filesystem::exists(path)) {
    std::string text = read_file(path);
    if (!text.empty() && !text.starts_with(kept)) throw InputError("--resume: " + path + " has another header");
    if (!text.empty()) kept = text.substr(0, text.rfind('\n') + 1);
    found_ = CsvTable::parse(kept, path);
  }
  write_file(path, kept);
  file_.open(path, std::ios::binary | std::ios::app);
}

void RowFile::append(const std::string& row) {
  std::ostream& out = standard_output_ ? static_cast<std::ostream&>(std::cout) : file_;
  out << row << '\n' << std::flush;
  if (!out) throw InputError(path_ + ": cannot be written");
}

std::vector<PredictRequest> without_row(const std::vector<PredictRequest>& requests, const CsvTable& found,
                                        Inputs& inputs) {
  if (found.size() == 0) return requests;
  std::map<std::vector<std::string>, std::deque<std::size_t>>
      open;  // by key: two files may describe models of one name
  for (std::size_t i = 0; i < requests.size(); ++i) open[row_key(requests[i], inputs)].push_back(i);
  std::vector<bool> done(requests.size(), false);
  for (std::size_t row = 0; row < found.size(); ++row) {
    const auto of_key = open.find(key_of(found, row));
    if (of_key == open.end() || of_key->second.empty())
      refuse(found, row, fmt::format("this sweep makes no row '{}'", csv_row(key_of(found, row))));
    const auto same_settings = [&](std::size_t i) {
      return settings_text(requests[i].settings) == found.cell(row, kSettings);
    };
    auto& of_row = of_key->second;
    const auto match = std::find_if(of_row.begin(), of_row.end(), same_settings);
    const std::size_t request = match == of_row.end() ? of_row.front() : *match;
    const std::string asked = settings_text(requests[request].settings);
    if (match == of_row.end())
      refuse(found, row,
             fmt::format("this row was made with the settings '{}', this sweep has '{}'", found.cell(row, kSettings),
                         asked));
    of_row.erase(match);
    done[request] = true;
  }
  std::vector<PredictRequest> rest;
  for (std::size_t i = 0; i < requests.size(); ++i)
    if (!done[i]) rest.push_back(requests[i]);
  return rest;
}

}  // namespace simsync
