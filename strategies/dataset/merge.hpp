// The shards of a data set put together.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace simsync {

/// Writes the data set of which `folders` are all the shards to `out`: byte for byte what one run would have made.
/// @return how many pairs it has.
/// @throws InputError when the folders were not made by the same question, or a shard is missing or there twice.
std::size_t merge_datasets(const std::vector<std::string>& folders, const std::string& out);

}  // namespace simsync
