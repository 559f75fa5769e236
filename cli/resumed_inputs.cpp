#include "cli/resumed_inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/file_log.hpp"
#include "base/output_file.hpp"
#include "cli/interruption.hpp"

namespace simsync {
namespace {

constexpr std::size_t kDigits = 64;

/// Lines of digits, two spaces and a path. @throws InputError
std::vector<ReadFile> load(const std::string& path) {
  std::vector<ReadFile> out;
  std::istringstream lines(read_output(path));
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const auto digits = line.find_first_not_of("0123456789abcdef");
    if (digits != kDigits || line.size() <= kDigits + 2 || line.compare(kDigits, 2, "  ") != 0)
      throw InputError(Diagnostic{.origin = {path, number, 1},
                                  .message = "expected a SHA-256, two spaces and a file",
                                  .key = {},
                                  .source_line = line,
                                  .note = {},
                                  .help = "without this file --resume does not compare inputs"});
    out.push_back({line.substr(kDigits + 2), line.substr(0, kDigits)});
  }
  return out;
}

void save(const std::string& path, const std::vector<ReadFile>& files) {
  std::string text;
  for (const ReadFile& file : files) text += fmt::format("{}  {}\n", file.sha256, file.path);
  write_file(path, text);
}

const ReadFile* with_path(const std::vector<ReadFile>& files, const std::string& path) {
  const auto found = std::find_if(files.begin(), files.end(), [&](const ReadFile& f) { return f.path == path; });
  return found == files.end() ? nullptr : &*found;
}

/// What `file` was before. A folder may have moved since: then a file of the same name that is not read any more.
const ReadFile* before(const ReadFile& file, const std::vector<ReadFile>& then, const std::vector<ReadFile>& now) {
  if (const ReadFile* same = with_path(then, file.path)) return same;
  const auto name = [](const ReadFile& f) { return std::filesystem::path(f.path).filename(); };
  const auto moved = std::find_if(then.begin(), then.end(), [&](const ReadFile& f) {
    return name(f) == name(file) && with_path(now, f.path) == nullptr;
  });
  return moved == then.end() ? nullptr : &*moved;
}

void compare(const std::string& csv, const std::vector<ReadFile>& then, const std::vector<ReadFile>& now) {
  for (const ReadFile& file : now) {
    const ReadFile* was = before(file, then, now);
    if (was == nullptr || was->sha256 == file.sha256) continue;
    throw InputError(Diagnostic{.origin = {file.path, 0, 0},
                                .message = fmt::format("--resume: has changed since the rows of {} were made", csv),
                                .key = {},
                                .source_line = {},
                                .note = fmt::format("{} has the hashes of what they were made from", inputs_file(csv)),
                                .help = "name another table, or begin this one anew without --resume"});
  }
}

/// @return a note when the rows cannot tell what they were made from, else nothing.
std::string keep_or_compare(const std::string& csv, bool has_rows) {
  const FileLog* log = FileLog::current();
  if (csv == "-" || log == nullptr || is_written_in_place(csv)) return {};
  const std::string path = inputs_file(csv);
  std::vector<ReadFile> all = log->inputs();
  if (has_rows) {
    if (!std::filesystem::exists(path))
      return fmt::format("{} is missing: whether the rows of {} were made from the same files cannot be told", path,
                         csv);
    const auto then = load(path);
    compare(csv, then, all);
    for (const ReadFile& file : then)
      if (before(file, all, then) == nullptr) all.push_back(file);
  }
  save(path, all);
  return {};
}

}  // namespace

std::string inputs_file(const std::string& csv) {
  return csv + ".inputs";
}

RowFile open_resumable(const std::string& csv, const std::string& header, bool resume) {
  RowFile file(csv, header, resume);
  const std::string note = keep_or_compare(csv, file.found().size() > 0);
  if (!note.empty()) std::cerr << "note: " << note << '\n';
  return file;
}

void tell_how_to_resume(const std::string& csv) {
  if (csv != "-")
    tell_when_interrupted(
        fmt::format("interrupted: {} keeps the rows so far; the same command with --resume adds the others", csv));
}

}  // namespace simsync
