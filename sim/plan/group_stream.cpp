#include "sim/plan/group_stream.hpp"

#include "sim/plan/compile.hpp"

namespace simsync::detail {

GroupStream::GroupStream(PlanWriter& writer, GroupingId grouping, QueueId queue)
    : w_(writer), grouping_(grouping), queue_(queue), costs_(writer.collective_costs(grouping)) {}

CollectiveChoice GroupStream::choice(CollectivePrimitive primitive, double bytes) {
  const auto [known, fresh] = known_.try_emplace({primitive, bytes});
  if (fresh) {
    const bool chooses = primitive == CollectivePrimitive::AllReduce;
    const CollectiveAlgorithm asked = chooses ? w_.strategy.graph.algorithm : CollectiveAlgorithm::Auto;
    if (chooses) w_.note_ring(costs_, asked);
    known->second = choose(primitive, asked, costs_, bytes);
  }
  return known->second;
}

OpId GroupStream::launch(const CollectiveKind& kind, double bytes, Reason reason, std::vector<OpId> after) {
  if (previous_ >= 0) after.push_back(previous_);
  previous_ = add(kind, bytes, std::move(reason), after);
  if (first_ < 0) first_ = previous_;
  return previous_;
}

void GroupStream::repeat() {
  if (first_ >= 0) w_.plan.ops[static_cast<std::size_t>(first_)].after.push_back({previous_, 1});
}

OpId GroupStream::add(const CollectiveKind& kind, double bytes, Reason reason, const std::vector<OpId>& after) {
  const CollectiveChoice chosen = choice(kind.primitive, bytes);
  Op op;
  op.grouping = grouping_;
  op.queue = queue_;
  op.reason = std::move(reason);
  op.body = Collective{.primitive = kind.primitive,
                       .algorithm = chosen.algorithm,
                       .protocol = chosen.protocol,
                       .root = kind.root,
                       .bytes = bytes,
                       .setup = collective_setup(w_.cluster.collective, bytes) + w_.strategy.graph.per_operation_cost};
  for (const OpId id : after) op.after.push_back({id, 0});
  return w_.add(std::move(op));
}

}  // namespace simsync::detail
