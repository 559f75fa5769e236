#include "cli/shard.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/parse_units.hpp"

namespace simsync {

std::optional<ShardFlag> parse_shard(const std::string& text) {
  const std::size_t slash = std::min(text.find('/'), text.size() - 1);
  const auto number = parse_integer(text.substr(0, slash));
  const auto count = parse_integer(text.substr(slash + 1));
  if (!number || !count || *number < 1 || *number > *count) return std::nullopt;
  return ShardFlag{*number, *count};
}

CLI::Validator shard() {
  const auto check = [](std::string& text) {
    return parse_shard(text) ? std::string{} : fmt::format("expected i/n with i from 1 to n, got '{}'", text);
  };
  return CLI::Validator(check, "i/n");
}

}  // namespace simsync
