// What a plan sends by collectives among groups of one size.
#pragma once
#include <vector>

#include "sim/plan/plan.hpp"

namespace simsync::test {

struct Sent {
  int count = 0;
  double bytes = 0.0;
  std::vector<int> ranks;  ///< of the first group
};

/// Collectives of this kind among so many ranks.
inline Sent sent(const Plan& plan, CollectivePrimitive primitive, std::size_t ranks) {
  Sent out;
  for (const Op& op : plan.ops) {
    if (op.kind() != OpKind::Collective || op.collective().primitive != primitive) continue;
    const auto group = plan.grouping(op.grouping).ranks(0);
    if (group.size() != ranks) continue;
    ++out.count;
    out.bytes += op.collective().bytes;
    out.ranks.assign(group.begin(), group.end());
  }
  return out;
}

}  // namespace simsync::test
