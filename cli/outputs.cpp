#include "cli/outputs.hpp"

#include "base/file.hpp"
#include "base/file_log.hpp"

namespace simsync {
namespace {

bool is_standard_output(const std::string& path) {
  return path.empty() || path == "-";
}

void add_to_log(const std::string& path, const std::string& flag) {
  if (is_standard_output(path)) return;
  if (FileLog* log = FileLog::current()) log->add_output(path, flag);
}

CLI::Validator with(const std::string& flag, void (*take)(const std::string&, const std::string&)) {
  const auto check = [flag, take](std::string& text) {
    if (text.empty()) return std::string{"expected a file name or '-'"};
    take(text, flag);
    return std::string{};
  };
  return CLI::Validator(check, "file");
}

}  // namespace

void announce_output(const std::string& path, const std::string& flag) {
  add_to_log(path, flag);
  if (!is_standard_output(path)) expect_writable(path);
}

CLI::Validator output_file(const std::string& flag) {
  return with(flag, announce_output);
}

CLI::Validator output_file_of_one(const std::string& flag) {
  return with(flag, add_to_log);
}

}  // namespace simsync
