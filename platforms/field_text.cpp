#include "platforms/field_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <span>

#include "base/parse_units.hpp"

namespace simsync {
namespace {

constexpr std::size_t kLongestName = 64;

std::string shown(const std::string& text) {
  constexpr std::size_t kLongestShown = 60;
  return text.size() <= kLongestShown ? text : text.substr(0, kLongestShown) + "...";
}

std::string not_a(const char* expected, const std::string& text) {
  return fmt::format("expected {}, got '{}'", expected, shown(text));
}

/// The text of a bound is the type's own text, so that messages name units as the user writes them.
template <class Make>
std::optional<std::string> out_of_range(const std::string& text, double value, const yaml::Range& range, Make make) {
  if (value >= range.low && value <= range.high) return std::nullopt;
  const auto bound = [&](double v) { return field_text(make(v)); };
  if (std::isinf(range.high))
    return fmt::format("{} is out of range: expected at least {}", shown(text), bound(range.low));
  return fmt::format("{} is out of range: expected from {} to {}", shown(text), bound(range.low), bound(range.high));
}

/// Reads a quantity whose stored unit is that of `range`.
template <class Q>
std::optional<std::string> read_quantity(const std::string& text, const std::optional<Q>& parsed, const char* expected,
                                         const yaml::Range& range, Q& value) {
  if (!parsed) return not_a(expected, text);
  if (auto wrong = out_of_range(text, parsed->value(), range, [](double v) { return Q{v}; })) return wrong;
  value = *parsed;
  return std::nullopt;
}

struct Unit {
  const char* name;
  double factor;
};

/// Length, with a malus for an exponent, which people read badly.
std::size_t length(const std::string& text) {
  const auto digits_end = text.find_first_not_of("0123456789.");
  return text.size() + (digits_end != std::string::npos && text[digits_end] == 'e' ? 4 : 0);
}

/// The shortest of `value` in each unit that reads back exactly; the first unit always does.
std::string shortest(double value, std::span<const Unit> units, const std::function<double(const std::string&)>& read) {
  std::string best = format_shortest(value) + units.front().name;
  for (const auto& unit : units.subspan(1)) {
    const std::string text = format_shortest(value / unit.factor) + unit.name;
    if (length(text) < length(best) && read(text) == value) best = text;
  }
  return best;
}

template <class Q>
double value_or_nan(const std::optional<Q>& quantity) {
  return quantity ? quantity->value() : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

bool is_name(const std::string& text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '+' || c == '-';
  };
  return !text.empty() && text.size() <= kLongestName && std::all_of(text.begin(), text.end(), allowed);
}

std::optional<std::string> parse_field(const std::string& text, double& value, const yaml::Range& range) {
  const auto parsed = parse_number(text);
  if (!parsed) return not_a("a number", text);
  if (auto wrong = out_of_range(text, *parsed, range, [](double v) { return v; })) return wrong;
  value = *parsed;
  return std::nullopt;
}

std::optional<std::string> parse_field(const std::string& text, int& value, const yaml::Range& range) {
  const auto parsed = parse_integer(text);
  if (!parsed) return not_a("a whole number", text);
  const auto as_int = [](double v) { return static_cast<int>(v); };
  if (auto wrong = out_of_range(text, static_cast<double>(*parsed), range, as_int)) return wrong;
  value = static_cast<int>(*parsed);
  return std::nullopt;
}

std::optional<std::string> parse_field(const std::string& text, bool& value, const yaml::Range&) {
  if (text != "true" && text != "false") return not_a("true or false", text);
  value = text == "true";
  return std::nullopt;
}

std::optional<std::string> parse_field(const std::string& text, std::string& value, const yaml::Range&) {
  if (!is_name(text)) return not_a("a name of letters, digits and ._+- (at most 64)", text);
  value = text;
  return std::nullopt;
}

std::optional<std::string> parse_field(const std::string& text, Seconds& value, const yaml::Range& range) {
  return read_quantity(text, parse_seconds(text), "a time with its unit, such as 10us or 1.5ms", range, value);
}

std::optional<std::string> parse_field(const std::string& text, Bytes& value, const yaml::Range& range) {
  const auto parsed = parse_bytes(text);
  if (!parsed) return not_a("a size with its unit, such as 25MiB or 512B", text);
  const auto as_bytes = [](double v) { return Bytes{static_cast<std::int64_t>(v)}; };
  if (auto wrong = out_of_range(text, static_cast<double>(parsed->count), range, as_bytes)) return wrong;
  value = *parsed;
  return std::nullopt;
}

std::optional<std::string> parse_field(const std::string& text, Flops& value, const yaml::Range& range) {
  // An amount of work is written as the rate that does it in one second: 1GFLOP, 1GFLOPS.
  const auto rate = text.ends_with("FLOP") ? parse_flops_rate(text + "S") : std::nullopt;
  const auto parsed = rate ? std::optional{Flops{rate->value()}} : std::nullopt;
  return read_quantity(text, parsed, "an amount of work with its unit, such as 1GFLOP", range, value);
}

std::optional<std::string> parse_field(const std::string& text, BytesPerSecond& value, const yaml::Range& range) {
  return read_quantity(text, parse_bandwidth(text), "a bandwidth with its unit, such as 10Gbps or 12.5GB/s", range,
                       value);
}

std::optional<std::string> parse_field(const std::string& text, FlopsPerSecond& value, const yaml::Range& range) {
  return read_quantity(text, parse_flops_rate(text), "a compute rate with its unit, such as 8.1TFLOPS", range, value);
}

std::string field_text(double value) {
  return format_shortest(value);
}
std::string field_text(int value) {
  return std::to_string(value);
}
std::string field_text(bool value) {
  return value ? "true" : "false";
}
std::string field_text(const std::string& value) {
  return value;
}

std::string field_text(Seconds value) {
  constexpr std::array kUnits{Unit{"s", 1.0}, Unit{"ms", 1e-3}, Unit{"us", 1e-6}, Unit{"ns", 1e-9}};
  return shortest(value.value(), kUnits, [](const std::string& t) { return value_or_nan(parse_seconds(t)); });
}

std::string field_text(Bytes value) {
  constexpr std::array kUnits{Unit{"B", 1.0}, Unit{"KiB", 0x1p10}, Unit{"MiB", 0x1p20}, Unit{"GiB", 0x1p30},
                              Unit{"TiB", 0x1p40}};
  std::string best = std::to_string(value.count) + "B";
  for (const auto& unit : std::span(kUnits).subspan(1)) {
    const auto whole = static_cast<std::int64_t>(unit.factor);
    const std::string text = std::to_string(value.count / whole) + unit.name;
    if (value.count % whole == 0 && text.size() < best.size()) best = text;
  }
  return best;
}

std::string field_text(BytesPerSecond value) {
  constexpr std::array kUnits{Unit{"B/s", 1.0},  Unit{"Gbps", 1e9 / 8}, Unit{"Mbps", 1e6 / 8},
                              Unit{"GB/s", 1e9}, Unit{"MB/s", 1e6},     Unit{"TB/s", 1e12}};
  return shortest(value.value(), kUnits, [](const std::string& t) { return value_or_nan(parse_bandwidth(t)); });
}

std::string field_text(FlopsPerSecond value) {
  constexpr std::array kUnits{Unit{"FLOPS", 1.0}, Unit{"MFLOPS", 1e6}, Unit{"GFLOPS", 1e9}, Unit{"TFLOPS", 1e12},
                              Unit{"PFLOPS", 1e15}};
  return shortest(value.value(), kUnits, [](const std::string& t) { return value_or_nan(parse_flops_rate(t)); });
}

std::string field_text(Flops value) {
  std::string rate = field_text(FlopsPerSecond{value.value()});
  rate.pop_back();  // the S of FLOPS
  return rate;
}

}  // namespace simsync
