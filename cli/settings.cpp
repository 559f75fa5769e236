#include "cli/settings.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

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

namespace {

/// A placement is a list itself, and a path may have commas.
std::vector<std::string> values_of(const std::string& key, const std::string& value) {
  if (key == "placement" || value.find(',') == std::string::npos || std::filesystem::exists(value)) return {value};
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= value.size();) {
    const std::size_t comma = std::min(value.find(',', at), value.size());
    out.push_back(value.substr(at, comma - at));
    if (out.back().empty())
      throw InputError(
          fmt::format("--set {}={}: nothing between two commas, before the first or after the last", key, value));
    at = comma + 1;
  }
  return out;
}

}  // namespace

std::vector<std::vector<std::pair<std::string, std::string>>> settings_combinations(
    const std::vector<std::string>& texts) {
  std::vector<std::vector<std::pair<std::string, std::string>>> out{{}};
  for (const auto& [key, list] : parse_settings(texts)) {
    const auto before = std::move(out);
    out = {};
    for (const auto& combination : before) {
      for (const auto& value : values_of(key, list)) {
        out.push_back(combination);
        out.back().emplace_back(key, value);
      }
    }
  }
  return out;
}

void check_single_values(const std::vector<std::pair<std::string, std::string>>& settings) {
  for (const auto& [key, value] : settings)
    if (values_of(key, value).size() > 1)
      throw InputError(fmt::format("--set {}={}: predict takes one value", key, value),
                       "'simsync sweep' predicts every value of a list");
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

std::string date_or_today(const std::string& date) {
  return date.empty() ? fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))) : date;
}

}  // namespace simsync
