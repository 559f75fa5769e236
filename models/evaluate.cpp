#include "models/evaluate.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/expression.hpp"

namespace simsync::detail {
namespace {

constexpr std::size_t kLongestName = 100;

bool fits_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
}

std::optional<std::int64_t> look_up(const Environment& environment, const std::string& name) {
  for (const Values* values : {environment.block, environment.model}) {
    if (values == nullptr) continue;
    if (const auto found = values->find(name); found != values->end()) return found->second;
  }
  return name == "in" ? environment.in : std::nullopt;
}

std::vector<std::string> known_names(const Environment& environment) {
  std::vector<std::string> known;
  for (const Values* values : {environment.block, environment.model}) {
    if (values == nullptr) continue;
    for (const auto& [name, value] : *values) known.push_back(name);
  }
  return known;
}

}  // namespace

std::string checked_name(const yaml::Node& value) {
  std::string text = value.text();
  if (text.size() <= kLongestName && std::all_of(text.begin(), text.end(), fits_name)) return text;
  value.fail(
      fmt::format("expected a name of letters, digits, '_', '.' and '-' with at most {} characters", kLongestName));
  return {};
}

std::int64_t evaluate(const yaml::Node& value, const Environment& environment, std::int64_t low, std::int64_t high) {
  const std::int64_t fallback = std::clamp<std::int64_t>(1, low, high);
  if (!value) return fallback;
  const std::string text = value.text();
  if (text.empty()) return fallback;
  const Evaluated result = evaluate(text, [&](const std::string& name) { return look_up(environment, name); });
  if (!result.error.empty()) {
    value.fail(result.error, result.unknown.empty() ? "" : did_you_mean(result.unknown, known_names(environment)));
    return fallback;
  }
  if (result.value >= low && result.value <= high) return result.value;
  value.fail(fmt::format("{} is out of range: expected {} to {}", result.value, low, high));
  return fallback;
}

Shape evaluate_shape(const yaml::Node& value, const Environment& environment) {
  const auto items = value.items();
  if (!value.is_sequence()) return {1};
  if (items.empty() || items.size() > kMaxAxes) {
    value.fail(fmt::format("expected 1 to {} axes, got {}", kMaxAxes, items.size()));
    return {1};
  }
  Shape shape;
  for (const yaml::Node& item : items) shape.push_back(evaluate(item, environment, 1, kMaxElements));
  if (elements_of(shape)) return shape;
  value.fail(fmt::format("{} has more than {} elements", text_of(shape), kMaxElements));
  return {1};
}

}  // namespace simsync::detail
