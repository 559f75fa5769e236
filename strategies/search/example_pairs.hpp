// Pairs of examples that rankers learn from. Private to strategies/search.
#pragma once
#include <utility>
#include <vector>

#include "strategies/search/ranker.hpp"

namespace simsync::detail {

/// Positive: `a` is the slower, by its step or, of nearly equal steps, by its shards; 0: neither is.
double slower_by(const Example& a, const Example& b);

/// Indices of the slower and of the faster example.
using Pair = std::pair<std::size_t, std::size_t>;

/// All pairs within domains, or `most` of them evenly among all.
std::vector<Pair> pairs_of(const std::vector<Example>& examples, std::size_t most);

}  // namespace simsync::detail
