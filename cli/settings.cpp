#include "cli/settings.hpp"

#include "base/error.hpp"
#include "sim/problem/problem.hpp"

namespace simsync {

std::vector<std::pair<std::string, std::string>> parse_settings(const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& text : texts) {
    const auto setting = parse_setting(text);
    if (!setting) throw InputError("--set " + text + ": expected key=value");
    out.push_back(*setting);
  }
  return out;
}

CLI::Validator key_and_value() {
  const auto check = [](std::string& text) {
    return parse_setting(text) ? std::string{} : "expected key=value, got '" + text + "'";
  };
  return CLI::Validator(check, "key=value");
}

CLI::Validator file_name() {
  const auto check = [](std::string& text) {
    return text.empty() ? std::string{"expected a file name or '-'"} : std::string{};
  };
  return CLI::Validator(check, "file");
}

}  // namespace simsync
