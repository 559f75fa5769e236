// What a ranker has learned elsewhere, for a model and a cluster of which few trials are known.
#pragma once
#include <memory>
#include <vector>

#include "strategies/search/ranker_kinds.hpp"

namespace simsync {

/// The mean of what three rankers say, each in standard deviations of its scores: one that learns the examples alone,
/// which counts by how many they are, and, with equal parts of the rest, the source and the simulator's own order (no
/// simulator: the source alone). So a source that misleads counts less with each example. A source whose scores do not
/// differ counts nothing. With fewer than two examples the source as it is. Deterministic.
/// `source`: a ranker of this kind, what transfer() made of one, or null: the simulator has all of the rest. What a
/// source is worth is the difference. `examples`: of one domain; two at least without a source.
std::shared_ptr<const Ranker> transfer(RankerKind kind, const std::shared_ptr<const Ranker>& source,
                                       const std::vector<Example>& examples);

}  // namespace simsync
