// `--set key=value` as typed.
#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace simsync {

/// Splits every text at its first '='. @throws InputError when there is none or the key is empty.
std::vector<std::pair<std::string, std::string>> parse_settings(const std::vector<std::string>& texts);

/// All combinations of settings of which some have several values (`key=a,b,c`), in the order of the values.
/// @throws InputError as parse_settings does, and for `key=a,,b`.
std::vector<std::vector<std::pair<std::string, std::string>>> settings_combinations(
    const std::vector<std::string>& texts);
/// @throws InputError for `key=a,b,c`, where one prediction is asked for.
void check_single_values(const std::vector<std::pair<std::string, std::string>>& settings);

/// The same as a check, so that a text without '=' is a usage error.
CLI::Validator key_and_value();
/// A check that a file name is not empty.
CLI::Validator file_name();

/// The value of `--date`; none: today's date in UTC, YYYY-MM-DD.
std::string date_or_today(const std::string& date);

}  // namespace simsync
