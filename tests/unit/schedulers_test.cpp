// Order, partition and credit of communication schedulers.
#include "tests/support/catch.hpp"
#include "tests/support/lab_run.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

constexpr double kExact = 1e-9;
constexpr double kUnit = 4.0;  ///< bytes of one unit; the wire moves one unit per second

/// The example of ByteScheduler's authors: layers 0, 1, 2 of 3, 6 and 3 units, forward and backward 2 s each; push and
/// pull use the two directions of one wire, one message at a time.
struct Toy {
  LabModel lab{{3 * kUnit, 2, 2}, {6 * kUnit, 2, 2}, {3 * kUnit, 2, 2}};
  Cluster cluster = lab_cluster(1, 1, {.nic = kUnit}, 1);
  Strategy strategy = on_server(lab.model, 1, {1, -1});

  Toy() {
    strategy.graph.gate = Gate::PerVariable;
    strategy.graph.scheduling.credit = Bytes{1};
    for (auto& entry : strategy.variables) entry.priority = static_cast<int>(entry.variable);
  }
};

}  // namespace

TEST_CASE("ByteScheduler's example takes 26 units with whole tensors in order", "[engine][scheduler]") {
  // b2, b1, b0 in 0..6. Push 2 2..5, 1 5..11, 0 11..14; pull 2 5..8, 1 11..17, 0 17..20; f0 20..22, f1 ..24, f2 ..26.
  const Toy toy;
  CHECK_THAT(step_of(toy.lab, toy.cluster, toy.strategy), WithinRel(26.0, kExact));
}

TEST_CASE("ByteScheduler's example takes 18 units with priorities and partitions of one unit", "[engine][scheduler]") {
  // Pushes 2 2 1 1 0 0 0 1 1 1 1 2 in 2..14, pulls the same a unit later in 3..15; f0 10..12, f1 14..16, f2 16..18.
  Toy toy;
  toy.strategy.graph.scheduling.ordering = Ordering::Priority;
  toy.strategy.graph.scheduling.partition = Bytes{static_cast<std::int64_t>(kUnit)};
  CHECK_THAT(step_of(toy.lab, toy.cluster, toy.strategy), WithinRel(18.0, kExact));
}

TEST_CASE("credit decides how far pulls overlap pushes", "[engine][scheduler]") {
  // One tensor of 4 pieces, 1 s each. One in service: push i i..i+1, pull i i+1..i+2: 5 s. Two in service share the
  // wire: pushes 0, 1 end at 2, pushes 2, 3 at 4; pulls 0, 1 2..4, 2, 3 4..6: 6 s. No limit: 4 s + 4 s. All of that
  // with a stream for every message; a single stream serves one message at a time by itself: 5 s without any credit.
  const LabModel lab{{.bytes = 4 * kUnit}};
  const Cluster cluster = lab_cluster(1, 1, {.nic = kUnit}, 1);
  Strategy strategy = on_server(lab.model, 1, {1, -1});
  strategy.graph.scheduling.partition = Bytes{static_cast<std::int64_t>(kUnit)};
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(5.0, kExact));
  strategy.graph.streams_per_server = 4;
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(8.0, kExact));
  strategy.graph.scheduling.credit = Bytes{1};
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(5.0, kExact));
  strategy.graph.scheduling.credit = Bytes{static_cast<std::int64_t>(2 * kUnit)};
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(6.0, kExact));
}

TEST_CASE("strict credit lets a short message pass a long one", "[engine][scheduler]") {
  // Layer 2 (4 units), 1 (4) and 0 (2), ready together in this order; credit 6 units.
  //   loose: 4 are in flight, credit is left: the next 4 start too; 0 waits for one of them. Shared wire: 2 and 1 end
  //   at 8 s, 0 at 10 s.
  //   strict: the second 4 do not fit, the 2 do: 2 and 0 share until 4 s, when 0 has its 2 units; 1 does not fit
  //   beside 2 until that ends at 6 s: 6..10 s.
  // Either way pushes end at 10 s, but the pull of 0 starts at 4 s instead of 16:
  //   loose: pulls 2 and 1 share 8..16 and leave no credit for 0: 16..18.
  //   strict: pull 0 4..6, pull 2 6..10, pull 1 10..14.
  const LabModel lab{{.bytes = 2 * kUnit}, {.bytes = 4 * kUnit}, {.bytes = 4 * kUnit}};
  const Cluster cluster = lab_cluster(1, 1, {.nic = kUnit}, 1);
  Strategy strategy = on_server(lab.model, 1, {1, -1});
  strategy.graph.streams_per_server = 3;
  strategy.graph.scheduling.credit = Bytes{static_cast<std::int64_t>(6 * kUnit)};
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(18.0, kExact));
  strategy.graph.scheduling.credit_is_strict = true;
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(14.0, kExact));
}

TEST_CASE("priority order of pulls alone", "[engine][scheduler]") {
  // TicTac: pushes leave as they become ready and share the wire: 2 + 2 units, both there at 4 s. Pulls one at a time,
  // layer 0 first: 4..6, layer 1 6..8, and f0 (4 s) runs 6..10, f1 10..14. In order of issue without priority the
  // pulls share the wire and both end at 8: f0 8..12, f1 12..16. No backward time.
  const LabModel lab{{2 * kUnit, 4, 0}, {2 * kUnit, 4, 0}};
  const Cluster cluster = lab_cluster(1, 1, {.nic = kUnit}, 1);
  Strategy strategy = on_server(lab.model, 1, {1, -1});
  strategy.graph.gate = Gate::PerVariable;
  strategy.graph.streams_per_server = 2;
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(16.0, kExact));
  strategy.graph.scheduling = {.ordering = Ordering::Priority, .credit = Bytes{1}, .pulls_only = true};
  for (auto& entry : strategy.variables) entry.priority = static_cast<int>(entry.variable);
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(14.0, kExact));
}

TEST_CASE("all-reduce in launch order or by priority", "[engine][scheduler]") {
  // Two nodes at 1 B/s: a message of 8 B takes 8 s, that of layer 2 (12 B) 12 s. Backward 4 s per layer, last layer
  // first: layer 2 at 4, 1 at 8, 0 at 12. In order: 4..16, 16..24, 24..32; forward, 8 s each, f0 32..40 to f2 48..56.
  // By priority layer 0 overtakes layer 1 at 16: layer 0 16..24, layer 1 24..32; f0 24..32, f1 32..40, f2 40..48.
  const LabModel lab{{8, 8, 4}, {8, 8, 4}, {12, 8, 4}};
  const Cluster cluster = lab_cluster(2, 1, {.nic = 1.0});
  Strategy strategy = all_reduced(lab.model, 2);
  strategy.graph.gate = Gate::PerVariable;
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(56.0, kExact));
  strategy.graph.scheduling.ordering = Ordering::Priority;
  for (auto& entry : strategy.variables) entry.priority = static_cast<int>(entry.variable);
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(48.0, kExact));
}
