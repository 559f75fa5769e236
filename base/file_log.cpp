#include "base/file_log.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <string_view>

#include "base/error.hpp"
#include "base/output_file.hpp"
#include "base/sha256.hpp"

namespace simsync {
namespace fs = std::filesystem;

namespace {

/// Readers and writers everywhere find it here: a file is an input or an output of the process, not of who opens it.
FileLog* living = nullptr;

[[noreturn]] void refuse(const std::string& path, const std::string& message) {
  throw InputError(Diagnostic{.origin = {path, 0, 0},
                              .message = message,
                              .key = {},
                              .source_line = {},
                              .note = {},
                              .help = "give the output a name of its own"});
}

/// Pipes and devices may be read and written at a time, and by several.
bool is_special(const std::string& path) {
  struct stat file {};
  return ::stat(path.c_str(), &file) == 0 && !S_ISREG(file.st_mode);
}

constexpr const char* kBoth = "is an input of this command and cannot be its output";

}  // namespace

FileLog::FileLog() {
  SIMSYNC_ASSERT(living == nullptr);
  living = this;
}

FileLog::~FileLog() {
  living = nullptr;
}

FileLog* FileLog::current() {
  return living;
}

FileLog::Identity FileLog::identity_of(const std::string& path) {
  struct stat file {};
  if (::stat(path.c_str(), &file) == 0) return {file.st_dev, file.st_ino, {}};
  std::error_code error;
  return {0, 0, fs::weakly_canonical(fs::absolute(target_of(path)), error).string()};
}

bool FileLog::note(const std::string& path) {
  if (is_special(path)) return false;
  const Identity identity = identity_of(path);
  for (const Output& output : outputs_) {
    if (identity_of(output.path) == identity) refuse(path, fmt::format("{} ({} {})", kBoth, output.flag, output.path));
  }
  return read_.insert(identity).second;
}

void FileLog::add_input(const std::string& path) {
  note(path);
}

void FileLog::add_input(const std::string& path, std::string_view text) {
  if (!note(path)) return;
  std::error_code error;
  inputs_.push_back({fs::canonical(path, error).string(), sha256(text)});
}

void FileLog::add_output(const std::string& path, const std::string& flag) {
  if (is_special(path)) return;
  const Identity identity = identity_of(path);
  if (read_.contains(identity)) refuse(path, fmt::format("{} ({})", kBoth, flag));
  for (const Output& output : outputs_) {
    if (output.flag != flag && identity_of(output.path) == identity)
      refuse(path, fmt::format("is the output of both {} and {}", output.flag, flag));
  }
  outputs_.push_back({path, flag});
}

void FileLog::expect_no_input(const std::string& path) const {
  if (!is_special(path) && read_.contains(identity_of(path))) refuse(path, kBoth);
}

}  // namespace simsync
