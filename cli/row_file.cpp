#include "cli/row_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <iostream>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/file_log.hpp"
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
    : header_(header), standard_output_(path == "-"), found_(CsvTable::parse(header + "\n", path)) {
  if (standard_output_) return;
  std::string kept = header + "\n";
  if (resume && !is_written_in_place(path) && std::filesystem::exists(path)) {
    std::string text = read_output(path);
    if (!text.empty() && !text.starts_with(kept)) throw InputError("--resume: " + path + " has another header");
    if (!text.empty()) kept = text.substr(0, text.rfind('\n') + 1);
    found_ = CsvTable::parse(kept, path);
  }
  if (const FileLog* log = FileLog::current()) log->expect_no_input(path);
  file_ = std::make_unique<GrowingFile>(path, kept);
}

void RowFile::append(const std::string& row) {
  if (!standard_output_) return file_->append(row + "\n");
  if (!std::exchange(begun_, true)) std::cout << header_ << '\n';
  std::cout << row << '\n' << std::flush;
  if (!std::cout) throw InputError("cannot write to standard output");
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
