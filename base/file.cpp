#include "base/file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/error.hpp"
#include "base/file_log.hpp"
#include "base/output_file.hpp"

namespace simsync {
namespace fs = std::filesystem;

namespace {

constexpr std::uintmax_t kLargest{64U << 20U};

/// All that `in` holds, or nothing when that is more than kLargest: a device may go on for ever.
std::optional<std::string> read_to_end(std::istream& in) {
  std::string text;
  std::string chunk(std::size_t{1} << 16U, '\0');
  while (in.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || in.gcount() > 0) {
    text.append(chunk, 0, static_cast<std::size_t>(in.gcount()));
    if (text.size() > kLargest) return std::nullopt;
  }
  return text;
}

/// Why the last call to the system failed.
std::string reason() {
  return errno != 0 ? std::generic_category().message(errno) : "unknown reason";
}

}  // namespace

std::string read_output(const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    throw InputError(
        Diagnostic{.origin = {path, 0, 0}, .message = why, .key = {}, .source_line = {}, .note = {}, .help = {}});
  };
  std::error_code error;
  if (!fs::exists(path, error)) refuse("no such file");
  if (fs::is_directory(path, error)) refuse("is a folder, expected a file");
  const auto size = fs::file_size(path, error);
  const auto too_large = [&] { refuse("is larger than 64 MiB"); };
  if (!error && size > kLargest) too_large();
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) refuse("cannot be read: " + reason());
  auto text = read_to_end(in);
  if (!text) too_large();
  if (in.bad()) refuse("cannot be read: " + reason());
  return std::move(*text);
}

std::string read_file(const std::string& path) {
  std::string text = read_output(path);
  if (FileLog* log = FileLog::current()) log->add_input(path, text);
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  return text;
}

void write_file(const std::string& path, const std::string& text) {
  write_file(path, [&](std::ostream& out) { out << text; });
}

void write_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  if (const FileLog* log = FileLog::current()) log->expect_no_input(path);
  Replacement file(path);
  write(file.stream());
  file.commit();
}

void expect_writable(const std::string& path) {
  if (is_written_in_place(path)) return;
  const Replacement never_committed(path);
}

std::string data_folder(const std::string& room) {
  const char* chosen = std::getenv("SIMSYNC_DATA");
  if (chosen != nullptr && *chosen != '\0') return (fs::path(chosen) / room).string();
  std::vector<fs::path> roots;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) roots.push_back((program.parent_path() / SIMSYNC_DATA_FROM_BIN).lexically_normal());
  roots.emplace_back(SIMSYNC_SOURCE_FOLDER);
  roots.emplace_back(SIMSYNC_INSTALLED_DATA);
  for (const auto& root : roots) {
    if (fs::is_directory(root / room, error)) return (root / room).string();
  }
  return (roots.front() / room).string();
}

std::vector<std::string> list_files(const std::string& folder, const std::string& extension) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == extension) names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string resolve_name(const std::string& name, const std::string& room, const std::string& extension,
                         const std::string& what) {
  if (name.find('/') != std::string::npos || fs::path(name).extension() == extension) return name;
  const std::string folder = data_folder(room);
  const auto known = list_files(folder, extension);
  if (std::find(known.begin(), known.end(), name) != known.end())
    return (fs::path(folder) / (name + extension)).string();
  std::string help = did_you_mean(name, known);
  const std::string several = what.ends_with('y') ? what.substr(0, what.size() - 1) + "ies" : what + "s";
  if (help.empty())
    help = fmt::format("'simsync list {}' shows the known names; a path must contain '/' or end in {}", several,
                       extension);
  throw InputError(fmt::format("unknown {} '{}'", what, name), help);
}

}  // namespace simsync
