// Shapes of tensors, without the batch axis, and the limits that keep every count inside 64 bits.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace simsync::detail {

/// `[channels, height, width]`, `[tokens, features]` or `[features]`.
using Shape = std::vector<std::int64_t>;

inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;  ///< of one tensor
/// Of all variables of a model: four bytes each still leave room for sums over thousands of workers.
inline constexpr std::int64_t kMaxParameters = std::int64_t{1} << 44;
// A file of a few lines may repeat a block; these keep its expansion below some seconds.
inline constexpr std::size_t kMaxLayers = 20'000;
inline constexpr std::size_t kMaxStatements = 60'000;  ///< read while blocks are expanded
inline constexpr int kMaxNesting = 16;                 ///< of blocks and branches in one another
inline constexpr std::size_t kMaxAxes = 8;

/// Product of the axes; nullopt when it is above kMaxElements or an axis is below 1.
std::optional<std::int64_t> elements_of(const Shape& shape);
/// The product as a number for costs; the shape must have passed `elements_of`.
double count_of(const Shape& shape);
/// `[64, 56, 56]`
std::string text_of(const Shape& shape);
/// The axis along which features lie: the first of an image, the last of anything else.
std::size_t feature_axis(const Shape& shape);

}  // namespace simsync::detail
