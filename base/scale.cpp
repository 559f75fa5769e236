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

std::string Scale::text(double value) const {
  switch (dimension) {
    case Dimension::Time:
      return format_number(value) + "s";
    case Dimension::Rate:
      return format_number(value) + "B/s";
    case Dimension::Size:
      return fmt::format("{:.0f}B", std::round(value));
    case Dimension::Number:
      break;
  }
  return format_number(value);
}

std::optional<ScaledValue> parse_scaled(std::string_view text) {
  if (const auto number = parse_number(text)) return ScaledValue{Dimension::Number, *number};
  if (const auto time = parse_seconds(text)) return ScaledValue{Dimension::Time, time->value()};
  if (const auto rate = parse_bandwidth(text)) return ScaledValue{Dimension::Rate, rate->value()};
  if (const auto size = parse_bytes(text)) return ScaledValue{Dimension::Size, static_cast<double>(size->count)};
  return std::nullopt;
}

}  // namespace simsync
