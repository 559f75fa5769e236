#include "cli/unknown.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "base/parse_units.hpp"

namespace simsync {
namespace {

std::string with_help(const std::string& message, const std::string& help) {
  return help.empty() ? message : message + "\n  help: " + help;
}

std::string unknown_flag(CLI::App& command, const std::string& flag) {
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options()) {
    for (const auto& name : option->get_lnames()) known.push_back("--" + name);
  }
  return with_help(fmt::format("unknown flag '{}'", flag), did_you_mean(flag, known));
}

std::vector<std::string> names_of(CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* one : command.get_subcommands(nullptr)) names.push_back(one->get_name());
  return names;
}

/// `4,,8`; CLI11 would take it for `4,8`.
bool lacks_item(const std::string& list) {
  return list.starts_with(',') || list.ends_with(',') || list.find(",,") != std::string::npos;
}

std::string unknown_command(CLI::App& command, const std::string& word) {
  const auto known = names_of(command);
  std::string help = did_you_mean(word, known);
  if (help.empty()) help = fmt::format("expected one of {}", fmt::join(known, ", "));
  return with_help(fmt::format("unknown subcommand '{}'", word), help);
}

}  // namespace

std::string unknown_word(CLI::App& app, int argc, const char* const* argv) {
  CLI::App* command = &app;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--") return {};
    if (word.size() > 1 && word.front() == '-') {
      const std::size_t equals = word.find('=');
      const CLI::Option* option = command->get_option_no_throw(word.substr(0, equals));
      if (option == nullptr && word.starts_with("--")) return unknown_flag(*command, word.substr(0, equals));
      if (option == nullptr) continue;
      if (word == "--help" || word == "-h" || word == "--version") return {};
      const bool takes_next = option->get_items_expected_max() > 0 && equals == std::string::npos;
      if (takes_next && i + 1 >= argc) return fmt::format("flag '{}' needs a value", word);
      if (takes_next) ++i;
      const std::string value = takes_next ? argv[i] : word.substr(std::min(equals, word.size() - 1) + 1);
      if (option->get_delimiter() == ',' && lacks_item(value))
        return fmt::format("{} {}: nothing between two commas, before the first or after the last",
                           word.substr(0, equals), value);
      continue;
    }
    if (command->get_subcommands(nullptr).empty()) continue;  // a value or a positional word
    const auto known = command->get_subcommands(nullptr);
    const auto next =
        std::find_if(known.begin(), known.end(), [&](const CLI::App* one) { return one->check_name(word); });
    if (next == known.end()) return unknown_command(*command, word);
    command = *next;
  }
  const auto known = names_of(*command);
  return known.empty() ? std::string{} : fmt::format("expected a subcommand: one of {}", fmt::join(known, ", "));
}

CLI::Validator whole_number(long long low, long long high) {
  const auto check = [low, high](std::string& text) {
    const auto value = parse_integer(text);
    if (value && *value >= low && *value <= high) return std::string{};
    return fmt::format("expected a whole number from {} to {}, got '{}'", low, high, text);
  };
  return CLI::Validator(check, fmt::format("{} to {}", low, high));
}

CLI::Validator number_between(double low, double high) {
  const auto check = [low, high](std::string& text) {
    const auto value = parse_number(text);
    if (value && *value >= low && *value <= high) return std::string{};
    return fmt::format("expected a number from {} to {}, got '{}'", low, high, text);
  };
  return CLI::Validator(check, fmt::format("{} to {}", low, high));
}

}  // namespace simsync
