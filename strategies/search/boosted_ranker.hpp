// Private to strategies/search.
#pragma once
#include <memory>

#include "strategies/search/ranker.hpp"

namespace simsync::detail {

/// Gradient-boosted trees that minimize the logistic loss of pairs (XGBoost, `rank:pairwise`); a domain is a group.
/// Learns interactions of features. Trees of few examples rank worse than the simulator, so that its score is a mean of
/// both, in which trees count by their examples. `simulated`: which feature is the logarithm of a simulated step.
/// @throws CapabilityError in a build without XGBoost.
std::unique_ptr<LearningRanker> boosted_ranker(std::size_t simulated);

}  // namespace simsync::detail
