// In which order workers read variables from servers. Private to sim/plan.
#pragma once
#include <cstddef>
#include <vector>

#include "strategies/strategy.hpp"

namespace simsync::detail {

/// Places in the backward order of so many variables. Reads after an update follow the forward pass. Reads at the start
/// of a step have no order of their own (TensorFlow leaves it to chance, which is what TicTac mends): a fixed shuffle
/// stands for it unless priorities decide.
std::vector<std::size_t> reading_order(const Strategy& strategy, std::size_t variables);

}  // namespace simsync::detail
