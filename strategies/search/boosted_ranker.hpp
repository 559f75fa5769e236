// Private to strategies/search.
#pragma once
#include <memory>

#include "strategies/search/ranker.hpp"

namespace simsync::detail {

/// Gradient-boosted trees that minimize the logistic loss of pairs (XGBoost, `rank:pairwise`); a domain is a group.
/// Learns interactions of features. To tune it is to add trees. @throws CapabilityError in a build without XGBoost.
std::unique_ptr<Ranker> boosted_ranker();

}  // namespace simsync::detail
