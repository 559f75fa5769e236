// How a length can be cut into equal parts.
#pragma once
#include <cstdint>

namespace simsync {

/// AutoDist's shard counts along an axis. Lengths below 2 give 1.
std::int64_t smallest_divisor(std::int64_t length);      ///< 2 or more; a prime length gives the length itself
std::int64_t smallest_non_divisor(std::int64_t length);  ///< 2 or more and below the length, else the length

/// The length closest to `wanted` (at least 1; of two the larger) that is cut as `length` is: with the same smallest
/// divisor and non-divisor. A prime is cut into ones, so any prime is like it.
std::int64_t closest_length_cut_like(std::int64_t length, double wanted);

}  // namespace simsync
