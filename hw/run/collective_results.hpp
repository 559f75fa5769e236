// What a collective takes from a rank and what it should leave there.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "sim/plan/bodies.hpp"

namespace simsync {

/// Floats of one rank's memory for one collective.
struct CollectiveSizes {
  std::size_t in = 0;
  std::size_t out = 0;
};

/// Over `ranks` ranks. Where a payload is cut into a part for each rank, it is padded so that parts are equal.
CollectiveSizes sizes_of(const Collective& what, std::size_t ranks);

/// A stretch of the output: position `out_begin` + k has the sum of position `in_begin` + k of these ranks' inputs.
struct ResultPart {
  std::size_t out_begin = 0;
  std::size_t in_begin = 0;
  std::size_t floats = 0;
  std::vector<int> ranks;
};

/// Of the rank at `place` of a group. Ascending, without gaps; empty where a rank has no result: of a reduce all but
/// the root, of a send/receive the sender.
std::vector<ResultPart> results_of(const Collective& what, std::span<const int> ranks, std::size_t place);

}  // namespace simsync
