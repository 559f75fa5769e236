#include "strategies/partition.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"

namespace simsync {

void expect_few_shards(std::int64_t shards) {
  if (shards > kMostShards)
    throw PlanError(
        fmt::format("variables would be cut into {} shards or more: expected at most {}", shards, kMostShards));
}

void expect_few_slices(const Model& model, std::int64_t slice) {
  expect_few_shards(model.parameter_count() / slice);
}

std::vector<std::int64_t> split_length(std::int64_t length, std::int64_t parts) {
  SIMSYNC_ASSERT(parts >= 1 && parts <= length);
  expect_few_shards(parts);
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(parts), length / parts);
  std::for_each_n(lengths.begin(), length % parts, [](std::int64_t& l) { ++l; });
  return lengths;
}

std::vector<std::int64_t> split_axis(const Variable& variable, int axis, std::int64_t parts) {
  if (variable.shape.empty()) return {1};
  const std::int64_t length = variable.shape.at(static_cast<std::size_t>(axis));
  auto shards = split_length(length, parts);
  const std::int64_t elements_per_entry = variable.elements() / length;
  for (auto& shard : shards) shard *= elements_per_entry;
  return shards;
}

std::vector<std::int64_t> cut_flat(std::int64_t elements, std::int64_t slice) {
  SIMSYNC_ASSERT(elements >= 1 && slice >= 1);
  expect_few_shards(elements / slice);
  std::vector<std::int64_t> slices(static_cast<std::size_t>(elements / slice), slice);
  if (elements % slice != 0) slices.push_back(elements % slice);
  return slices;
}

std::vector<std::int64_t> cut_rows(const Variable& variable, std::int64_t slice) {
  SIMSYNC_ASSERT(slice >= 1);
  if (variable.shape.empty()) return {1};
  const std::int64_t rows = variable.shape.front();
  const std::int64_t rows_per_shard = std::max<std::int64_t>(1, slice / (variable.elements() / rows));
  return split_axis(variable, 0, (rows + rows_per_shard - 1) / rows_per_shard);
}

std::vector<int> splittable_axes(const Variable& variable) {
  std::vector<int> axes;
  const std::size_t candidates =
      variable.sparse ? std::min<std::size_t>(1, variable.shape.size()) : variable.shape.size();
  for (std::size_t axis = 0; axis < candidates; ++axis) {
    if (variable.shape[axis] > 1) axes.push_back(static_cast<int>(axis));
  }
  return axes;
}

}  // namespace simsync
