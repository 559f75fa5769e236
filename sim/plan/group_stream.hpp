// Collectives of the groups of one grouping, on a stream of their own. Private to sim/plan.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/plan/plan_writer.hpp"

namespace simsync::detail {

/// Writes them in the order in which they are launched.
class GroupStream {
public:
  /// `queue`: what they take turns on; -1: nothing, what they wait for says enough.
  GroupStream(PlanWriter& writer, GroupingId grouping, QueueId queue);

  [[nodiscard]] int ranks() const { return costs_.shape.ranks(); }

  /// The next one, behind the one before. All-gather: `bytes` are what each rank contributes.
  OpId launch(const CollectiveKind& kind, double bytes, Reason reason, std::vector<OpId> after);
  /// The first of the next step waits for the last of this one.
  void repeat();
  /// One that does not wait for the one before.
  OpId add(const CollectiveKind& kind, double bytes, Reason reason, const std::vector<OpId>& after);

private:
  CollectiveChoice choice(CollectivePrimitive primitive, double bytes);

  PlanWriter& w_;
  GroupingId grouping_;
  QueueId queue_;
  GroupCosts costs_;
  std::map<std::pair<CollectivePrimitive, double>, CollectiveChoice> known_;
  OpId first_ = -1;  ///< launched
  OpId previous_ = -1;
};

}  // namespace simsync::detail
