#include "strategies/sbp/signature.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/parse_units.hpp"

namespace simsync {
namespace {

constexpr int kMostTensorAxes = 64;  ///< far above what frameworks allow; keeps axes inside an int

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

[[noreturn]] void expected_entry(std::string_view text) {
  throw InputError(
      fmt::format("'{}' is no layout: expected S(axis) with an axis from 0 to {}, B or P", text, kMostTensorAxes - 1));
}

}  // namespace

Sbp parse_sbp(std::string_view text) {
  const std::string_view entry = trimmed(text);
  if (entry == "B") return Sbp::broadcast();
  if (entry == "P") return Sbp::partial();
  if (!entry.starts_with("S(") || !entry.ends_with(')')) expected_entry(text);
  const auto axis = parse_integer(trimmed(entry.substr(2, entry.size() - 3)));
  if (!axis || *axis < 0 || *axis >= kMostTensorAxes) expected_entry(text);
  return Sbp::split(static_cast<int>(*axis));
}

SbpTuple parse_sbp_tuple(std::string_view text) {
  std::string_view inner = trimmed(text);
  if (!inner.starts_with('(')) return {parse_sbp(inner)};
  if (!inner.ends_with(')'))
    throw InputError(fmt::format("'{}' has no closing parenthesis: expected a tuple such as (S(0),B)", text));
  inner = inner.substr(1, inner.size() - 2);
  SbpTuple out;
  for (;;) {
    const auto comma = inner.find(',');
    out.push_back(parse_sbp(inner.substr(0, comma)));
    if (comma == std::string_view::npos) return out;
    inner.remove_prefix(comma + 1);
  }
}

std::string text_of(Sbp entry) {
  switch (entry.kind) {
    case Sbp::Kind::Split:
      return fmt::format("S({})", entry.axis);
    case Sbp::Kind::Broadcast:
      return "B";
    case Sbp::Kind::Partial:
      return "P";
  }
  assertion_failed("every kind has a text", __FILE__, __LINE__);
}

std::string text_of(const SbpTuple& tuple) {
  if (tuple.size() == 1) return text_of(tuple.front());
  std::vector<std::string> entries;
  for (const Sbp entry : tuple) entries.push_back(text_of(entry));
  return fmt::format("({})", fmt::join(entries, ","));
}

}  // namespace simsync
