// What messages that flow through take beyond the work of the busiest port, in units of one message.
#include "sim/plan/pipeline_fill.hpp"

#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

constexpr double kExact = 1e-9;

double fill(CollectiveAlgorithm algorithm, int nodes, int per_node, int chunks, const MessageCost& intra,
            const MessageCost& inter) {
  GroupShape group;
  for (int node = 0; node <= nodes; ++node) group.node_begin.push_back(node * per_node);
  const CollectiveKind kind{CollectivePrimitive::AllReduce, algorithm};
  const Pipeline whole = schedule_of(kind, group, chunks).pipelines.front();
  return PipelineFill(kind, group, chunks, whole).time(intra, inter).value();
}

}  // namespace

TEST_CASE("two ranks with a stream cap: up, then down, at the pace of the cap", "[plan][collective]") {
  // A message takes 2, of which the link needs 1, and 1 of latency. 5 of them leave at 0, 2 ... 8; the last has come up
  // at 11 and down at 14. The hops are busy for 10 of that.
  const MessageCost capped{.latency = 1.0, .alone = 2.0, .link = 1.0};
  CHECK_THAT(fill(CollectiveAlgorithm::BroadcastReduce, 1, 2, 5, capped, {}), WithinRel(4.0, kExact));
  CHECK_THAT(fill(CollectiveAlgorithm::BroadcastReduce, 2, 1, 5, {}, capped), WithinRel(4.0, kExact));
}

TEST_CASE("three nodes: traffic up and down meets at once", "[plan][collective]") {
  // The root has two children. Both send at once: 2; both are sent to: 2. One message takes 4, and every further one 3,
  // for a NIC carries two messages of one tree and one of the other.
  const MessageCost message{.latency = 0.0, .alone = 1.0, .link = 1.0};
  for (const int chunks : {1, 2, 7}) {
    CHECK_THAT(fill(CollectiveAlgorithm::DoubleBinaryTree, 3, 1, chunks, {}, message), WithinRel(1.0, kExact));
  }
}

TEST_CASE("seven nodes: the second message goes up while the first is on its way down", "[plan][collective]") {
  // A full tree of 2 levels, 4 messages per NIC and round. One message: siblings share a NIC up and down, 4 x 2 = 8.
  // A second one reaches the middle right behind the first, 2 later, so 10 in all and not 8 + 4.
  const MessageCost message{.latency = 0.0, .alone = 1.0, .link = 1.0};
  CHECK_THAT(fill(CollectiveAlgorithm::DoubleBinaryTree, 7, 1, 1, {}, message), WithinRel(8.0 - 4.0, kExact));
  CHECK_THAT(fill(CollectiveAlgorithm::DoubleBinaryTree, 7, 1, 2, {}, message), WithinRel(10.0 - 8.0, kExact));
}

TEST_CASE("a large tree is cut and keeps the way of its first message", "[plan][collective]") {
  // 2^9 nodes, one message: 2 x 9 latencies and (4 x 9 - 2) messages, of which the flow accounts for 4.
  const MessageCost message{.latency = 3.0, .alone = 1.0, .link = 1.0};
  CHECK_THAT(fill(CollectiveAlgorithm::DoubleBinaryTree, 512, 1, 1, {}, message),
             WithinRel(2 * 9 * 3.0 + 34.0 - 4.0, kExact));
}
