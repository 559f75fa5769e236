// Which algorithm and protocol a collective runs with.
#include <optional>

#include "base/error.hpp"
#include "sim/plan/collective_alone.hpp"
#include "sim/plan/collectives.hpp"

namespace simsync {
namespace {

std::vector<CollectiveAlgorithm> candidates(CollectivePrimitive primitive, CollectiveAlgorithm asked,
                                            const GroupCosts& costs, double bytes) {
  if (asked == CollectiveAlgorithm::Auto) asked = costs.library;
  if (const auto only = only_algorithm(primitive)) return {*only};
  const NcclCall call{primitive, costs.shape.ranks(), costs.shape.nodes(), bytes};
  if (asked == CollectiveAlgorithm::Auto) return {nccl_choice(costs.nccl, call).algorithm};
  if (asked == CollectiveAlgorithm::Best) {
    std::vector<CollectiveAlgorithm> all{CollectiveAlgorithm::Ring, CollectiveAlgorithm::DoubleBinaryTree,
                                         CollectiveAlgorithm::HalvingDoubling, CollectiveAlgorithm::BroadcastReduce};
    if (costs.alike()) all.push_back(CollectiveAlgorithm::Hierarchical);
    return all;
  }
  if (asked == CollectiveAlgorithm::Hierarchical && !costs.alike()) return {CollectiveAlgorithm::Ring};
  return {asked};
}

}  // namespace

CollectiveChoice choose(CollectivePrimitive primitive, CollectiveAlgorithm asked, const GroupCosts& costs,
                        double bytes) {
  const bool asks_best = asked == CollectiveAlgorithm::Best ||
                         (asked == CollectiveAlgorithm::Auto && costs.library == CollectiveAlgorithm::Best);
  const bool alone = asks_best && costs.alone != nullptr;
  std::optional<CollectiveChoice> best;
  for (const auto algorithm : candidates(primitive, asked, costs, bytes)) {
    for (const auto& [protocol, rates] : costs.protocols) {
      const Seconds time = alone ? costs.alone->time(primitive, algorithm, protocol, bytes)
                                 : collective_time({primitive, algorithm}, costs.shape, bytes, rates);
      if (!best || time < best->time) best = CollectiveChoice{algorithm, protocol, time};
    }
  }
  SIMSYNC_ASSERT(best.has_value());
  return *best;
}

}  // namespace simsync
