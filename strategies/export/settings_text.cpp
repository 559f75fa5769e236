// The files that frameworks read.
#include <fmt/format.h>

#include <algorithm>

#include "strategies/export/framework.hpp"

namespace simsync {
namespace {

constexpr std::size_t kIndent = 2;

/// Words of yaml, toml and json, which agree on them; texts with quotes.
std::string quoted(const SettingValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  return fmt::format("\"{}\"", std::get<std::string>(value));
}

std::string plain(const SettingValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr ? *text : quoted(value);
}

std::string flags(const std::vector<Setting>& settings) {
  std::string out;
  for (const Setting& setting : settings)
    out += std::holds_alternative<bool>(setting.value) ? fmt::format("--{}\n", setting.name)
                                                       : fmt::format("--{} {}\n", setting.name, plain(setting.value));
  return out;
}

/// `a.b` -> `  b:` under `a:`, which stands above it.
std::string yaml(const std::vector<Setting>& settings) {
  std::string out;
  const std::string* before = nullptr;
  for (const Setting& setting : settings) {
    const auto depth = static_cast<std::size_t>(std::count(setting.section.begin(), setting.section.end(), '.'));
    if (before == nullptr || *before != setting.section) {
      const std::size_t dot = setting.section.rfind('.');
      out += fmt::format("{}{}:\n", std::string(kIndent * depth, ' '),
                         dot == std::string::npos ? setting.section : setting.section.substr(dot + 1));
    }
    before = &setting.section;
    out += fmt::format("{}{}: {}\n", std::string(kIndent * (depth + 1), ' '), setting.name, plain(setting.value));
  }
  return out;
}

std::string toml(const std::vector<Setting>& settings) {
  std::string out;
  const std::string* before = nullptr;
  for (const Setting& setting : settings) {
    if (before == nullptr || *before != setting.section)
      out += fmt::format("{}[{}]\n", out.empty() ? "" : "\n", setting.section);
    before = &setting.section;
    out += fmt::format("{} = {}\n", setting.name, quoted(setting.value));
  }
  return out;
}

/// Of one level of sections.
std::string json(const std::vector<Setting>& settings) {
  std::string out = "{";
  const char* separator = "\n";
  std::string open;
  for (const Setting& setting : settings) {
    if (setting.section != open) {
      if (!open.empty()) out += "\n  }", separator = ",\n";
      if (!setting.section.empty()) out += fmt::format("{}  \"{}\": {{", separator, setting.section), separator = "\n";
      open = setting.section;
    }
    out += fmt::format("{}{}\"{}\": {}", separator, std::string(open.empty() ? kIndent : 2 * kIndent, ' '),
                       setting.name, quoted(setting.value));
    separator = ",\n";
  }
  return out + (open.empty() ? "\n}\n" : "\n  }\n}\n");
}

}  // namespace

std::string to_text(Framework framework, const std::vector<Setting>& settings) {
  switch (framework) {
    case Framework::Megatron:
      return flags(settings);
    case Framework::NeMo:
      return yaml(settings);
    case Framework::Torchtitan:
      return toml(settings);
    case Framework::DeepSpeed:
      return json(settings);
  }
  return {};
}

}  // namespace simsync
