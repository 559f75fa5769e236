// The order in which what waited for one op becomes ready, where nothing decides it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/plan/plan.hpp"
#include "strategies/random.hpp"

namespace simsync {

/// Orders what instance `group` of `op` releases in `iteration`: as it is, unless `op.random_order`; then every order
/// is equally likely, and the same for the same arguments.
template <class T>
void draw_order(const Plan& plan, const Op& op, int group, int iteration, std::vector<T>& released) {
  if (!op.random_order) return;
  constexpr std::uint64_t kOrder = 1;
  Random random = draws_of(plan, kOrder, group, iteration);
  for (std::size_t i = released.size(); i > 1; --i) std::swap(released[i - 1], released[random.below(i)]);
}

}  // namespace simsync
