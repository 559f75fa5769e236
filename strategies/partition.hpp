// How a variable is cut into shards: counts of elements, no placement.
#pragma once
#include <cstdint>
#include <vector>

#include "models/model.hpp"

namespace simsync {

/// Shards of all variables of a strategy together. An embedding table cut row by row stays below it.
inline constexpr std::int64_t kMostShards = std::int64_t{1} << 21;
/// @throws PlanError above kMostShards.
void expect_few_shards(std::int64_t shards);
/// @throws PlanError when slices of `slice` elements make more than kMostShards of a model.
void expect_few_slices(const Model& model, std::int64_t slice);

/// Lengths of `parts` shards of an axis: floor(length / parts), one more for the first length mod parts.
/// Needs 1 <= parts <= length. @throws PlanError above kMostShards, as all that follow.
std::vector<std::int64_t> split_length(std::int64_t length, std::int64_t parts);
/// Elements of each shard when `axis` of `variable` is split into `parts`.
std::vector<std::int64_t> split_axis(const Variable& variable, int axis, std::int64_t parts);
/// Full slices of `slice` elements and one with the rest.
std::vector<std::int64_t> cut_flat(std::int64_t elements, std::int64_t slice);
/// Fewest shards of whole rows (axis 0) with at most `slice` elements each, one row at least.
std::vector<std::int64_t> cut_rows(const Variable& variable, std::int64_t slice);

/// Axes longer than 1; only axis 0 for a sparse variable.
std::vector<int> splittable_axes(const Variable& variable);

}  // namespace simsync
