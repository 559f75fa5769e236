// The order in which what waited for one op becomes ready, where nothing decides it.
#pragma once
#include <algorithm>
#include <vector>

#include "base/random.hpp"
#include "sim/plan/plan.hpp"

namespace simsync {

/// Orders what instance `group` of `op` releases in `iteration`: as it is, unless `op.random_order`; then every order
/// is equally likely, and the same for the same arguments.
template <class T>
void draw_order(const Plan& plan, const Op& op, int group, int iteration, std::vector<T>& released) {
  if (!op.random_order) return;
  Random random = draws_of(plan, DrawPurpose::ReleaseOrder, group, iteration);
  for (std::size_t i = released.size(); i > 1; --i) std::swap(released[i - 1], released[random.below(i)]);
}

}  // namespace simsync
