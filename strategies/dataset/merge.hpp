// The shards of a data set put together.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace simsync {

struct MergedPairs {
  std::size_t made = 0;
  /// By the question, also of combinations that cannot run. Where it is more, either no strategy fitted or a shard was
  /// ended early: the files do not tell which.
  std::size_t asked = 0;
};

/// Writes the data set of which `folders` are all the shards to `out`: byte for byte what one run would have made.
/// @throws InputError when the folders were not made by the same question, or a shard is missing or there twice.
MergedPairs merge_datasets(const std::vector<std::string>& folders, const std::string& out);

}  // namespace simsync
