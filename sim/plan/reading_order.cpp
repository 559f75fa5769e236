#include "sim/plan/reading_order.hpp"

#include <utility>

#include "base/random.hpp"

namespace simsync::detail {

std::vector<std::size_t> reading_order(const Strategy& strategy, std::size_t variables) {
  std::vector<std::size_t> order;
  for (std::size_t place = variables; place-- > 0;) order.push_back(place);
  if (!strategy.graph.pull_at_step_start || strategy.graph.scheduling.ordering == Ordering::Priority) return order;
  constexpr std::uint64_t kSeed = 1;
  Random random(kSeed);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

}  // namespace simsync::detail
