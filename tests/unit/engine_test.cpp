// The clock, the wires and the devices of a replay, against times derived on paper.
#include <map>

#include "base/error.hpp"
#include "sim/engine/enough_steps.hpp"
#include "sim/engine/flow_network.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab_run.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kGolden = 1e-9;

struct FlowOf {
  double bytes;
  double cap = kInfinite;
};

/// Ends of flows over one link, all started after `delay`.
std::vector<double> ends(double bandwidth, double delay, const std::vector<FlowOf>& flows) {
  FlowNetwork& network = simgrid_network();
  network.begin({BytesPerSecond{bandwidth}});
  std::vector<int> paths;
  for (const FlowOf& flow : flows) paths.push_back(network.add_path({0}, BytesPerSecond{flow.cap}));
  std::vector<double> out(flows.size(), -1.0);
  constexpr FlowNetwork::Token kStart = 1000;
  network.after(Seconds{delay}, kStart);
  const auto handle = [&](FlowNetwork::Token token) {
    if (token < kStart) {
      out[token] = network.now().value();
      return;
    }
    for (std::size_t i = 0; i < flows.size(); ++i) network.start_flow(paths[i], flows[i].bytes, i);
  };
  network.run(handle, [] {});
  return out;
}

/// Layers with the given times whose all-reduce over two nodes at 1 byte/s takes as many seconds as it has bytes:
/// 2 (n-1)/n S/B = S/B for n = 2. Bytes are multiples of 4, so times are in units of 4 s.
const LabLinks kSlow{.nic = 1.0, .port = 1.0};

/// a (2 s) follows a, b (3 s) follows a, c (3 s) follows b, each of the iteration before; in the first all start at 0.
///   a: 2, 4, 6, 8.  b: 3, 2+3 = 5, 4+3 = 7, 9.  c: 3, 3+3 = 6, 5+3 = 8, 7+3 = 10.
/// Iterations end at 3, 6, 8, 10: steps of 3, 3, 2, 2. The second began at 2, before the first had ended.
Plan three_timers() {
  Plan plan;
  plan.set_ranks({{0, 0}});
  const auto work = [](double seconds, OpId after) {
    Op op;
    op.grouping = kWholeJob;
    op.body = HostWork{.at = {End::Kind::Fixed, {0, -1}}, .duration = Seconds{seconds}};
    op.after = {{after, 1}};
    return op;
  };
  plan.ops = {work(2.0, 0), work(3.0, 0), work(3.0, 1)};
  check(plan);
  return plan;
}

}  // namespace

TEST_CASE("golden: 1 GB over 1 GB/s takes 1 s", "[engine][golden]") {
  REQUIRE_THAT(ends(1e9, 0.0, {{1e9}})[0], WithinRel(1.0, kGolden));
}

TEST_CASE("golden: 400 GB over 400 GB/s with 10 us takes 1.00001 s", "[engine][golden]") {
  REQUIRE_THAT(ends(400e9, 10e-6, {{400e9}})[0], WithinRel(1.00001, kGolden));
}

TEST_CASE("golden: the second run in a process starts at zero again", "[engine][golden]") {
  const double first = ends(1e9, 10e-6, {{1e9}})[0];
  REQUIRE_THAT(ends(1e9, 10e-6, {{1e9}})[0], WithinRel(first, kGolden));
}

TEST_CASE("golden: flows share a link and a cap leaves the rest to others", "[engine][golden]") {
  // 1 GB and 2 GB over 1 GB/s: half each until 2 s; the second has 1 GB left and all of the link: 3 s.
  const auto shared = ends(1e9, 0.0, {{1e9}, {2e9}});
  CHECK_THAT(shared[0], WithinRel(2.0, kGolden));
  CHECK_THAT(shared[1], WithinRel(3.0, kGolden));
  // 1 GB at no more than 0.25 GB/s takes 4 s; 3 GB beside it get 0.75 GB/s: 4 s as well.
  const auto capped = ends(1e9, 0.0, {{1e9, 0.25e9}, {3e9}});
  CHECK_THAT(capped[0], WithinRel(4.0, kGolden));
  CHECK_THAT(capped[1], WithinRel(4.0, kGolden));
}

TEST_CASE("golden: a plan's all-reduce at NVLink speed", "[engine][golden]") {
  // 2 ranks of one node, 400 GB over 400 GB/s ports with 10 us: 2 rounds of 200 GB: 1 s + 2 x 10 us.
  const Cluster cluster = lab_cluster(1, 2, {.port = 400e9, .port_latency = 10e-6});
  REQUIRE_THAT(all_reduce_time(cluster, 2, 400e9, CollectiveAlgorithm::Ring, Fidelity::Fluid),
               WithinRel(1.00002, kGolden));
}

TEST_CASE("wait-free backward: a collective starts when its gradient and the channel are there", "[engine][overlap]") {
  // Layers 0, 1, 2: backward 4, 8, 4 s; all-reduce 8, 4, 12 s; forward 4 s each, so backward begins at 12.
  //   backward ends: 16, 24, 28 (layers 2, 1, 0). comm 2: 16..28; comm 1: max(28, 24) = 28..32; comm 0: 32..40.
  const LabModel lab{{8, 4, 4}, {4, 4, 8}, {12, 4, 4}};
  const Cluster cluster = lab_cluster(2, 1, kSlow);
  Strategy strategy = all_reduced(lab.model, 2);
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(40.0, kGolden));
  // Without overlap: forward 12 + backward 16 + 24 of communication.
  strategy.graph.overlap = Overlap::None;
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(52.0, kGolden));
}

TEST_CASE("a running collective slows the compute beside it", "[engine][overlap]") {
  // Share 0.1. Backward 4, 20, 16 s for layers 2, 1, 0 and all-reduce 12, 4, 8 s; no forward.
  //   b2 0..4. comm 2 4..16. b1 does 0.9 x 12 = 10.8 of 20 by 16, the other 9.2 undisturbed: ends at 25.2.
  //   comm 1 25.2..29.2; b0 does 3.6 of 16 by then, the other 12.4 by 41.6. comm 0 41.6..49.6.
  const LabModel lab{{8, 0, 16}, {4, 0, 20}, {12, 0, 4}};
  Cluster cluster = lab_cluster(2, 1, kSlow);
  cluster.collective.interference = 0.1;
  CHECK_THAT(step_of(lab, cluster, all_reduced(lab.model, 2)), WithinRel(49.6, kGolden));
}

TEST_CASE("per-variable gates let the forward pass start before the last message is there", "[engine][gate]") {
  // Both all-reduces are ready after backward; priority sends layer 0 first. forward and backward 4 s per layer.
  //   per variable: backward ends at 0; comm 0 0..4, comm 1 4..16; f0 4..8, f1 16..20, backward 20..28: every 28 s.
  //   all: comm until 16, forward 16..24, backward 24..32: every 32 s.
  const LabModel lab{{4, 4, 4}, {12, 4, 4}};
  const Cluster cluster = lab_cluster(2, 1, kSlow);
  Strategy strategy = all_reduced(lab.model, 2);
  strategy.graph.overlap = Overlap::None;
  strategy.graph.scheduling.ordering = Ordering::Priority;
  for (auto& entry : strategy.variables) entry.priority = static_cast<int>(entry.variable);
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(32.0, kGolden));
  strategy.graph.gate = Gate::PerVariable;
  const Prediction prediction = run(lab, cluster, strategy);
  CHECK_THAT(prediction.step.value(), WithinRel(28.0, kGolden));
  // The first iteration has nothing to wait for: forward 8, backward 8, communication 16. The steady step is another.
  CHECK_THAT(prediction.steps.front().value(), WithinRel(32.0, kGolden));
  CHECK(prediction.steady);
}

TEST_CASE("reading variables inside the next step", "[engine][gate]") {
  // One worker, one server, a stream for every message, so that messages share the wire. Layers 0 and 1: 8 and 12 B at
  // 1 B/s, forward and backward 4 s each.
  //   b1 0..4, b0 4..8. push 1 starts at 4 and has 8 B left at 8, when push 0 (8 B) joins: both end at 24.
  //   pulls from 24 on share the way back: pull 0 ends at 40, pull 1 has 4 B left: 44.
  //   TensorFlow: f0 40..44, f1 44..48: every 48 s. All: f0 44..48, f1 48..52: every 52 s.
  const LabModel lab{{8, 4, 4}, {12, 4, 4}};
  const Cluster cluster = lab_cluster(1, 1, kSlow, 1);
  Strategy strategy = on_server(lab.model, 1, {1, -1});
  strategy.graph.streams_per_server = 2;
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(52.0, kGolden));
  strategy.graph.pull_at_step_start = true;
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(48.0, kGolden));
}

TEST_CASE("variables are not read before the step that wrote them is over", "[engine][gate]") {
  // Only layer 1 has a tensor: 8 B at 1 B/s. Its server has it long before backward ends.
  //   b1 0..4, b0 4..24; push 4..12. The next step begins at 24: f0 24..28, pull 24..32, f1 32..36.
  const LabModel lab{{0, 4, 20}, {8, 4, 4}};
  const Cluster cluster = lab_cluster(1, 1, kSlow, 1);
  Strategy strategy = on_server(lab.model, 1, {1, -1});
  strategy.graph.pull_at_step_start = true;
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(36.0, kGolden));
}

TEST_CASE("a host's copy is refreshed inside the step, as soon as its variable is updated", "[engine][gate]") {
  // Layers 0 and 1: 8 and 4 B at 1 B/s, forward and backward 4 s each.
  //   b1 0..4, b0 4..8; push 1 4..8, push 0 8..16.
  //   read in the next step: both pulls start at 16 and share the way: pull 1 ends at 24, pull 0 at 28; f0 28..32,
  //   f1 32..36. As copies of the host: pull 1 8..12, pull 0 16..24, when the step returns; f0 24..28, f1 28..32.
  const LabModel lab{{8, 4, 4}, {4, 4, 4}};
  const Cluster cluster = lab_cluster(1, 1, kSlow, 1);
  Strategy strategy = on_server(lab.model, 1, {1, -1});
  strategy.graph.streams_per_server = 2;
  strategy.graph.pull_at_step_start = true;
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(36.0, kGolden));
  for (auto& entry : strategy.variables)
    std::get<PsSynchronizer>(entry.shards.front().synchronizer).local_replication = true;
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(32.0, kGolden));
}

TEST_CASE("opposite directions of one pair of nodes share its limit", "[engine][collective]") {
  // Rings at 1 B/s, and 1 B/s for a pair. Two nodes send 16 B each to the other: 32 s. Of three nodes every pair
  // carries one hop of 2 x 2/3 x 12 = 16 B: 16 s, as without the limit.
  for (const Fidelity fidelity : {Fidelity::Fluid, Fidelity::Steps}) {
    for (const auto& [nodes, bytes, expected] : {std::tuple{2, 16.0, 32.0}, {3, 12.0, 16.0}}) {
      Cluster cluster = lab_cluster(nodes, 1, kSlow);
      cluster.network.pair_bandwidth = BytesPerSecond{1.0};
      CHECK_THAT(all_reduce_time(cluster, nodes, bytes, CollectiveAlgorithm::Ring, fidelity),
                 WithinRel(expected, kGolden));
    }
  }
  Cluster cluster = lab_cluster(4, 1, kSlow);
  cluster.network.pair_bandwidth = BytesPerSecond{1.0};
  CHECK_THROWS_AS(all_reduce_time(cluster, 4, 16.0, CollectiveAlgorithm::Ring, Fidelity::Folded), PlanError);
}

TEST_CASE("compute is the slowest device's work without waiting", "[engine]") {
  // 4 + 4 s forward, 8 + 4 s backward, 2 s of optimizer: 22 s; the straggler needs twice that, wherever it stands.
  LabModel lab{{8, 4, 8}, {4, 4, 4}};
  lab.profile.update = Seconds{2.0};
  Cluster cluster = lab_cluster(2, 1, kSlow);
  CHECK_THAT(run(lab, cluster, all_reduced(lab.model, 2)).compute.value(), WithinRel(22.0, kGolden));
  cluster.groups.front().count = 1;
  cluster.groups.resize(3, cluster.groups.front());
  for (std::size_t slow = 0; slow < 3; ++slow) {
    for (std::size_t i = 0; i < 3; ++i) {
      cluster.groups[i].name = "group" + std::to_string(i);
      cluster.groups[i].compute_slowdown = i == slow ? 2.0 : 1.0;
    }
    CHECK_THAT(run(lab, cluster, all_reduced(lab.model, 3)).compute.value(), WithinRel(44.0, kGolden));
  }
}

TEST_CASE("rows are all-gathered: every NIC receives those of all others", "[engine][collective]") {
  // A table of 1000 x 8, 2 samples that look up 3 rows each: 6 x (8 x 4 + 8) = 240 B from every rank. P = 4 at 1 kB/s:
  // 3 x 240 B = 0.72 s. The table itself: 2 x 3/4 x 32,000 B = 48 s.
  const Cluster cluster = lab_cluster(4, 1, {.nic = 1e3, .port = 1e3});
  LabModel lab{{.bytes = 32'000}};
  lab.profile.batch = 2;
  lab.model = sparse_table(8, 2);
  Strategy strategy = all_reduced(lab.model, 4);
  for (const Fidelity fidelity : {Fidelity::Fluid, Fidelity::Steps, Fidelity::Folded})
    CHECK_THAT(step_of(lab, cluster, strategy, fidelity), WithinRel(0.72, kGolden));
  strategy.variables.front().sparse_as_dense = true;
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(48.0, kGolden));
}

TEST_CASE("a cold first step that equals the second by accident ends nothing", "[engine]") {
  const Cluster cluster = lab_cluster(1, 1);
  Plan plan = three_timers();
  const Prediction overlapping = replay(plan, cluster, {});
  CHECK(overlapping.steps == std::vector<Seconds>{Seconds{3.0}, Seconds{3.0}, Seconds{2.0}, Seconds{2.0}});
  CHECK(overlapping.step == Seconds{2.0});
  CHECK(overlapping.steady);
  // Where nothing overlaps, and nothing is left behind, the first step is every step. A recording has a second one.
  plan.ops.resize(1);
  CHECK(replay(plan, cluster, {}).steps == std::vector<Seconds>{Seconds{2.0}});
  CHECK(replay(plan, cluster, {.record = true}).steps == std::vector<Seconds>{Seconds{2.0}, Seconds{2.0}});
}

TEST_CASE("a step that keeps changing is the slope of its ends", "[engine]") {
  // Three timers cut short: steps of 3, 3 and 2. Not steady; ends at 3, 6 and 8 lie along 2.5. One alone is what it is.
  const Cluster cluster = lab_cluster(1, 1);
  const Plan plan = three_timers();
  const Prediction cut = replay(plan, cluster, {.max_iterations = 3});
  CHECK(cut.steps == std::vector<Seconds>{Seconds{3.0}, Seconds{3.0}, Seconds{2.0}});
  CHECK(!cut.steady);
  CHECK(cut.step == Seconds{2.5});
  const Prediction cold = replay(plan, cluster, {.max_iterations = 1});
  CHECK(!cold.steady);
  CHECK(cold.step == Seconds{3.0});
  // Twelve ends: the first three do not count. Steps of 4 and 6 in turn are 5 on average, whichever comes last; one end
  // of nine that is late by 1.2 in the end changes it by 4 / 60 of that, and the mean of the last six by 1 / 6.
  std::vector<Seconds> ends;
  for (int i = 0; i < 12; ++i) ends.emplace_back(5.0 * i + (i % 2 == 0 ? 10.0 : 11.0));
  CHECK_THAT(detail::pace_of_ends(ends).value(), WithinRel(5.0, 1e-12));
  ends.back() += Seconds{1.2};
  CHECK_THAT(detail::pace_of_ends(ends).value(), WithinRel(5.08, 1e-12));
}

TEST_CASE("a replay tells how far it is, and is the same", "[engine]") {
  // A ring of 16 with every message: 2 x 15 rounds of 16 messages are 480 flows an iteration, and two are asked for.
  // An iteration has 16 forward, 16 backward and 16 update ops and the all-reduce, at most.
  const LabModel lab{{.bytes = 64, .forward = 4, .backward = 4}};
  const Cluster cluster = lab_cluster(16, 1, kSlow);
  const Strategy strategy = all_reduced(lab.model, 16);
  std::vector<ReplayProgress> told;
  const Prediction watched = run(lab, cluster, strategy,
                                 {.fidelity = Fidelity::Steps,
                                  .max_iterations = 2,
                                  .convergence = -1.0,
                                  .progress = [&](const ReplayProgress& now) { told.push_back(now); }});
  CHECK(watched.steps.front() == run(lab, cluster, strategy, {.fidelity = Fidelity::Steps}).step);
  REQUIRE(told.size() >= 2);
  for (std::size_t i = 0; i < told.size(); ++i) {
    CHECK(told[i].ops == told.front().ops);
    CHECK(told[i].completed <= 3 * told[i].ops);
    CHECK(told[i].flows <= watched.flows);
    if (i > 0) CHECK(told[i].flows > told[i - 1].flows);
    if (i > 0) CHECK(told[i].completed >= told[i - 1].completed);
  }
  CHECK(told.front().iterations == 0);
  CHECK(told.back().iterations == 1);
  CHECK(told.back().completed >= told.back().ops);
}

TEST_CASE("one stream's cap holds a collective back unless it opens several channels", "[engine][collective]") {
  // 2 nodes, 16 B, 1 B/s, one stream 0.25 B/s: 64 s; two channels 32 s; four fill the link: 16 s, and so do eight.
  Cluster cluster = lab_cluster(2, 1, kSlow);
  cluster.links["nic"].per_flow_cap = BytesPerSecond{0.25};
  for (const auto& [channels, expected] : {std::pair{1, 64.0}, {2, 32.0}, {4, 16.0}, {8, 16.0}}) {
    cluster.collective.channels = channels;
    for (const Fidelity fidelity : {Fidelity::Fluid, Fidelity::Steps})
      CHECK_THAT(all_reduce_time(cluster, 2, 16.0, CollectiveAlgorithm::Ring, fidelity), WithinRel(expected, kGolden));
  }
}

TEST_CASE("a slow node paces everyone, a slow NIC paces the ring", "[engine][heterogeneous]") {
  // 4 nodes, 4 s of backward, ring of 16 B: 2 x 3/4 x 16 = 24 s.
  const LabModel lab{{16, 0, 4}};
  Cluster cluster = lab_cluster(4, 1, kSlow);
  const Strategy strategy = all_reduced(lab.model, 4);
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(28.0, kGolden));
  cluster.groups.push_back(cluster.groups.front());
  cluster.groups[0].count = 3;
  cluster.groups[1].count = 1;
  cluster.groups[1].name = "odd";
  cluster.groups[1].compute_slowdown = 2.0;  // backward 8 s
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(32.0, kGolden));
  cluster.groups[1].compute_slowdown = 1.0;
  cluster.groups[1].nic_slowdown = 2.0;  // its hop moves 24 B at 0.5 B/s
  for (const Fidelity fidelity : {Fidelity::Fluid, Fidelity::Steps})
    CHECK_THAT(step_of(lab, cluster, strategy, fidelity), WithinRel(52.0, kGolden));
}

TEST_CASE("an oversubscribed leaf slows what crosses it", "[engine][heterogeneous]") {
  // 4 nodes, 2 under each leaf. A ring crosses from leaf to leaf once each way. Uplink 2 B / oversubscription:
  //   2: B, the ring's own rate: 24 s as on one switch. 4: B / 2: 48 s.
  const LabModel lab{{.bytes = 16}};
  Cluster cluster = lab_cluster(4, 1, kSlow);
  cluster.network.nodes_per_leaf = 2;
  cluster.network.oversubscription = 2.0;
  CHECK_THAT(step_of(lab, cluster, all_reduced(lab.model, 4)), WithinRel(24.0, kGolden));
  cluster.network.oversubscription = 4.0;
  CHECK_THAT(step_of(lab, cluster, all_reduced(lab.model, 4)), WithinRel(48.0, kGolden));
}

TEST_CASE("one worker and layers without variables need no communication", "[engine]") {
  const LabModel lab{{8, 4, 4}, {0, 4, 4}};
  const Prediction alone = run(lab, lab_cluster(1, 1), all_reduced(lab.model, 1));
  CHECK_THAT(alone.step.value(), WithinRel(16.0, kGolden));
  CHECK(alone.flows == 0);
  const LabModel empty{{0, 4, 4}, {0, 4, 4}};
  CHECK_THAT(step_of(empty, lab_cluster(2, 1), all_reduced(empty.model, 2)), WithinRel(16.0, kGolden));
}
