// Text with units to quantities: the one place that knows what "25MiB" or "100Gbps" means.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/units.hpp"

namespace simsync {

/// A finite decimal number without a unit; nullopt for anything else (`1e400`, `nan`, `0x1f`, trailing text).
std::optional<double> parse_number(std::string_view text);
/// A whole number without a unit.
std::optional<std::int64_t> parse_integer(std::string_view text);

/// `10us`, `1.5ms`, `2s`, `3min`; a unit is mandatory except for `0`.
std::optional<Seconds> parse_seconds(std::string_view text);
/// `512B`, `25MiB`, `100KB` (powers of 1000), `1GiB` (powers of 1024); must be a whole number of bytes.
std::optional<Bytes> parse_bytes(std::string_view text);
/// `10Gbps` or `10Gbit/s` (bits, powers of 1000), `12.5GB/s`, `1GiB/s`.
std::optional<BytesPerSecond> parse_bandwidth(std::string_view text);
/// `8.1TFLOPS` (per second, powers of 1000).
std::optional<FlopsPerSecond> parse_flops_rate(std::string_view text);

/// Shortest decimal text that reads back as the same double.
std::string format_shortest(double value);
/// Decimal text with nine significant digits, the precision of every file the program writes.
std::string format_number(double value);
/// For people: `1.23 ms`, `4.50 us`, `2.1 s`.
std::string format_seconds(Seconds t);
/// For people: `25.0 MiB`.
std::string format_bytes(double bytes);

}  // namespace simsync
