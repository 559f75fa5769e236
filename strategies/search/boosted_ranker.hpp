// Private to strategies/search.
#pragma once
#include <memory>

#include "strategies/search/ranker.hpp"

namespace simsync::detail {

/// Gradient-boosted trees that minimize the logistic loss of pairs (XGBoost, `rank:pairwise`); a domain is a group.
/// Learns interactions of features. @throws CapabilityError in a build without XGBoost.
std::unique_ptr<LearningRanker> boosted_ranker();

}  // namespace simsync::detail
