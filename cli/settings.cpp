#include "cli/settings.hpp"

#include "base/error.hpp"

namespace simsync {

std::vector<std::pair<std::string, std::string>> parse_settings(const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) throw InputError("--set " + text + ": expected key=value");
    out.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return out;
}

CLI::Validator key_and_value() {
  const auto check = [](std::string& text) {
    const std::size_t equals = text.find('=');
    const bool good = equals != std::string::npos && equals > 0;
    return good ? std::string{} : "expected key=value, got '" + text + "'";
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
