#include "base/scale.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/parse_units.hpp"

namespace simsync {

double Scale::at(double share, double low, double high) const {
  if (logarithmic) return low * std::pow(high / low, share);
  return low + share * (high - low);
}

double Scale::share_of(double value, double low, double high) const {
  const double share = logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  return std::clamp(share, 0.0, 1.0);
}

namespace {

std::string with_unit(const std::string& number, double value, Dimension dimension) {
  switch (dimension) {
    case Dimension::Time:
      return number + "s";
    case Dimension::Rate:
      return number + "B/s";
    case Dimension::Size:
      return fmt::format("{:.0f}B", std::round(value));
    case Dimension::Number:
      break;
  }
  return number;
}

}  // namespace

std::string Scale::text(double value) const {
  return with_unit(format_number(value), value, dimension);
}

std::string Scale::exact_text(double value) const {
  return with_unit(format_shortest(value), value, dimension);
}

std::optional<ScaledValue> parse_scaled(std::string_view text) {
  if (const auto number = parse_number(text)) return ScaledValue{Dimension::Number, *number};
  if (const auto time = parse_seconds(text)) return ScaledValue{Dimension::Time, time->value()};
  if (const auto rate = parse_bandwidth(text)) return ScaledValue{Dimension::Rate, rate->value()};
  if (const auto size = parse_bytes(text)) return ScaledValue{Dimension::Size, static_cast<double>(size->count)};
  return std::nullopt;
}

}  // namespace simsync
