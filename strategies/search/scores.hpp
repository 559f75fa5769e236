// Scores of examples. Private to strategies/search.
#pragma once
#include <vector>

#include "strategies/search/ranker.hpp"

namespace simsync::detail {

/// What `ranker` says of each.
std::vector<double> scores_of(const std::vector<Example>& examples, const Ranker& ranker);

/// Standard deviation of scores within domains: what differs between domains ranks nothing. 0: no two scores of a
/// domain differ by more than rounding, or there are none.
double deviation_within_domains(const std::vector<Example>& examples, const std::vector<double>& scores);

}  // namespace simsync::detail
