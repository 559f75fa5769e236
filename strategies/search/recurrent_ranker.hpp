// A ranker that sees the order of a model's segments. Private to strategies/search.
#pragma once
#include <memory>

#include "strategies/search/ranker.hpp"

namespace simsync::detail {

/// Where its features are: first those of a strategy as a whole, then as many of each segment.
struct RecurrentFeatures {
  std::size_t whole = 0;
  std::size_t prior = 0;  ///< of the whole, as LinearRankerOptions has it
  int segments = 1;
};

/// A linear ranker of the strategy as a whole, and what RecurrentNet adds to its score for what happens where in the
/// model. The network learns the logistic loss of pairs too, with Adam (Kingma and Ba, ICLR 2015), and only as much as
/// cross-validation finds right: with few examples nothing is left of it.
std::unique_ptr<LearningRanker> recurrent_ranker(const RecurrentFeatures& features);

}  // namespace simsync::detail
