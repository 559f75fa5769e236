#include "base/parse_units.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <span>

namespace simsync {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr double kKilo = 1e3;
constexpr double kMega = 1e6;
constexpr double kGiga = 1e9;
constexpr double kTera = 1e12;
constexpr double kPeta = 1e15;
constexpr double kKibi = 1024.0;
constexpr double kMebi = kKibi * 1024.0;
constexpr double kGibi = kMebi * 1024.0;
constexpr double kTebi = kGibi * 1024.0;

constexpr std::array kTimes{Unit{"s", 1.0}, Unit{"ms", 1e-3}, Unit{"us", 1e-6}, Unit{"ns", 1e-9}, Unit{"min", 60.0}};
constexpr std::array kSizes{Unit{"B", 1.0},     Unit{"KB", kKilo},  Unit{"MB", kMega},
                            Unit{"GB", kGiga},  Unit{"TB", kTera},  Unit{"KiB", kKibi},
                            Unit{"MiB", kMebi}, Unit{"GiB", kGibi}, Unit{"TiB", kTebi}};
constexpr std::array kBandwidths{
    Unit{"B/s", 1.0},        Unit{"KB/s", kKilo},       Unit{"MB/s", kMega},       Unit{"GB/s", kGiga},
    Unit{"TB/s", kTera},     Unit{"KiB/s", kKibi},      Unit{"MiB/s", kMebi},      Unit{"GiB/s", kGibi},
    Unit{"bps", 1.0 / 8},    Unit{"Kbps", kKilo / 8},   Unit{"Mbps", kMega / 8},   Unit{"Gbps", kGiga / 8},
    Unit{"Tbps", kTera / 8}, Unit{"Kbit/s", kKilo / 8}, Unit{"Mbit/s", kMega / 8}, Unit{"Gbit/s", kGiga / 8}};
constexpr std::array kFlopRates{Unit{"FLOPS", 1.0},    Unit{"KFLOPS", kKilo}, Unit{"MFLOPS", kMega},
                                Unit{"GFLOPS", kGiga}, Unit{"TFLOPS", kTera}, Unit{"PFLOPS", kPeta}};

/// The number at the front of `text` and what follows it (without the spaces between).
std::optional<std::pair<double, std::string_view>> split_number(std::string_view text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || !std::isfinite(value)) return std::nullopt;
  std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  return std::pair{value, rest};
}

std::optional<double> parse_with(std::string_view text, std::span<const Unit> units) {
  const auto parts = split_number(text);
  if (!parts) return std::nullopt;
  if (parts->second.empty()) return parts->first == 0.0 ? std::optional<double>{0.0} : std::nullopt;
  for (const auto& unit : units) {
    if (parts->second == unit.name) {
      const double value = parts->first * unit.factor;
      return std::isfinite(value) ? std::optional<double>{value} : std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  const auto parts = split_number(text);
  return parts && parts->second.empty() ? std::optional<double>{parts->first} : std::nullopt;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Seconds> parse_seconds(std::string_view text) {
  const auto v = parse_with(text, kTimes);
  return v ? std::optional{Seconds{*v}} : std::nullopt;
}

std::optional<Bytes> parse_bytes(std::string_view text) {
  constexpr double kLargestExact = 9.0e15;  // doubles hold every whole number up to 2^53
  const auto v = parse_with(text, kSizes);
  if (!v || std::abs(*v) > kLargestExact || *v != std::floor(*v)) return std::nullopt;
  return Bytes{static_cast<std::int64_t>(*v)};
}

std::optional<BytesPerSecond> parse_bandwidth(std::string_view text) {
  const auto v = parse_with(text, kBandwidths);
  return v ? std::optional{BytesPerSecond{*v}} : std::nullopt;
}

std::optional<FlopsPerSecond> parse_flops_rate(std::string_view text) {
  const auto v = parse_with(text, kFlopRates);
  return v ? std::optional{FlopsPerSecond{*v}} : std::nullopt;
}

std::string format_shortest(double value) {
  std::array<char, 32> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return error == std::errc{} ? std::string(buffer.data(), end) : std::string{"nan"};
}

std::string format_number(double value) {
  return fmt::format("{:.9g}", value);
}

std::string format_seconds(Seconds t) {
  const double v = std::abs(t.value());
  if (v >= 1.0 || v == 0.0) return fmt::format("{:.3f} s", t.value());
  if (v >= 1e-3) return fmt::format("{:.3f} ms", t.value() * 1e3);
  return fmt::format("{:.2f} us", t.value() * 1e6);
}

std::string format_bytes(double bytes) {
  if (bytes >= kGibi) return fmt::format("{:.2f} GiB", bytes / kGibi);
  if (bytes >= kMebi) return fmt::format("{:.1f} MiB", bytes / kMebi);
  if (bytes >= kKibi) return fmt::format("{:.1f} KiB", bytes / kKibi);
  return fmt::format("{:.0f} B", bytes);
}

}  // namespace simsync
