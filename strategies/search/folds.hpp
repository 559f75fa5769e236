// Cross-validation: who ranks best what it has not seen. Private to strategies/search.
#pragma once
#include <cstddef>
#include <vector>

#include "strategies/search/ranker.hpp"

namespace simsync::detail {

struct Fold {
  std::vector<Example> known;
  std::vector<Example> held;
};

/// Of few examples several deals, and few folds in each, so that there are pairs to compare. The same examples make the
/// same folds.
std::vector<Fold> folds_of(const std::vector<Example>& examples);

/// `accuracies`: by choice, then by fold. The first choice that ranks as well as the best one: the mean of its
/// differences is at most the standard error of that mean. So of a difference that is noise the earlier choice gains.
std::size_t first_of_the_best(const std::vector<std::vector<double>>& accuracies);

}  // namespace simsync::detail
