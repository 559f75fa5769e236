// `--shard i/n`: the i-th of n parts.
#pragma once
#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace simsync {

struct ShardFlag {
  long long number = 1;  ///< from 1
  long long count = 1;
};

/// Nothing for other texts than `i/n` with i from 1 to n.
std::optional<ShardFlag> parse_shard(const std::string& text);
/// The same as a check of an option.
CLI::Validator shard();

}  // namespace simsync
