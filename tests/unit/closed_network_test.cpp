// Workers and servers in closed form: mean value analysis by hand, and against the simulator.
#include "sim/plan/closed_network.hpp"

#include <cmath>

#include "base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab_run.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

/// 1 MB; forward and backward take 2 ms each.
const LabModel& one_layer() {
  static const LabModel kModel{{.bytes = 1e6, .forward = 2e-3, .backward = 2e-3}};
  return kModel;
}

Strategy asynchronous(const Model& model, int workers) {
  Strategy strategy = on_server(model, workers, {workers, -1});
  strategy.graph.pull_at_step_start = true;
  for (VariableStrategy& entry : strategy.variables)
    std::get<PsSynchronizer>(entry.shards.front().synchronizer).sync = false;
  return strategy;
}

}  // namespace

TEST_CASE("mean value analysis by hand", "[async]") {
  const ClosedNetwork network{.delay = Seconds{3.0}, .stations = {{"a", Seconds{1.0}}}};
  // n = 1: R = 1, X = 1/4, Q = 1/4. n = 2: R = 5/4, X = 2/4.25, Q = 2.5/4.25. n = 3: R = 1 + 2.5/4.25.
  const auto x = throughput(network, 3);
  CHECK_THAT(x[0], WithinRel(0.25, 1e-12));
  CHECK_THAT(x[1], WithinRel(2.0 / 4.25, 1e-12));
  CHECK_THAT(x[2], WithinRel(3.0 / (4.0 + 2.5 / 4.25), 1e-12));
  CHECK(throughput_bound(network, 2) == 0.5);
  CHECK(throughput_bound(network, 8) == 1.0);
  CHECK(saturation(network, network.round()) == 4.0);
  CHECK(saturation(network, Seconds{2.5}) == 2.5);
  CHECK(network.bottleneck()->name == "a");
  CHECK_THAT(throughput(network, 200).back(), WithinRel(1.0, 1e-3));
}

TEST_CASE("a network without a station grows without bound", "[async]") {
  const ClosedNetwork network{.delay = Seconds{2.0}, .stations = {}};
  CHECK(throughput(network, 4).back() == 2.0);
  CHECK(std::isinf(saturation(network, network.round())));
  CHECK(network.bottleneck() == nullptr);
}

TEST_CASE("demands of a plan: compute and latency are a delay, the server's NIC and threads are stations", "[async]") {
  Cluster cluster = lab_cluster(1, 1, {.nic = 1e9, .nic_latency = 1e-4}, 1);
  CpuClass& server = cluster.groups.back().cpu;
  server.threads = 4;
  server.update_rate = BytesPerSecond{0.25e9};
  const Plan plan = compile(one_layer().model, one_layer().profile, cluster, asynchronous(one_layer().model, 1));
  const ClosedNetwork network = closed_network(plan, cluster);
  REQUIRE(network.stations.size() == 3);
  CHECK(network.stations[0].name == "node1/nic-in");
  CHECK_THAT(network.stations[0].demand.value(), WithinRel(1e-3, 1e-9));
  CHECK(network.stations[1].name == "node1/nic-out");
  CHECK(network.stations[2].name == "node1:cpu0 threads");
  CHECK_THAT(network.stations[2].demand.value(), WithinRel(1e-3, 1e-6));
  // 4 ms of compute, four latencies, and the 3 ms of an update that the other threads do not take.
  CHECK_THAT(network.delay.value(), WithinRel(7.4e-3, 1e-3));
  const Prediction alone = run(one_layer(), cluster, asynchronous(one_layer().model, 1));
  CHECK_THAT(alone.step.value(), WithinRel(network.round().value(), 1e-3));
}

TEST_CASE("the closed form is within 5 % of the simulator where workers vary and nothing overlaps", "[async]") {
  // Steps of 1 to 9 ms, 5 on average: as variable as they come without a tail.
  LabModel lab{{.bytes = 1e6, .forward = 2.5e-3, .backward = 2.5e-3}};
  for (int i = 1; i <= 9; ++i) lab.profile.steps.push_back({{Seconds{0.5e-3 * i}, Seconds{0.5e-3 * i}}});
  for (const int workers : {1, 2, 4, 8, 16}) {
    const Cluster cluster = lab_cluster(workers, 1, {.nic = 1e9}, 1);
    const Strategy strategy = asynchronous(lab.model, workers);
    const double simulated = workers / run(lab, cluster, strategy, {.steps_per_worker = 400}).step.value();
    const ClosedNetwork network = closed_network(compile(lab.model, lab.profile, cluster, strategy), cluster);
    INFO(workers);
    CHECK_THAT(simulated, WithinRel(throughput(network, workers).back(), 0.05));
    CHECK(simulated <= 1.02 * throughput_bound(network, workers));
  }
}

TEST_CASE("an update of all workers together is shared among their rounds", "[async]") {
  Cluster cluster = lab_cluster(4, 1, {.nic = 1e9}, 1);
  CpuClass& server = cluster.groups.back().cpu;
  server.threads = 1;
  server.update_rate = BytesPerSecond{0.25e9};
  Strategy strategy = asynchronous(one_layer().model, 4);
  auto& ps = std::get<PsSynchronizer>(strategy.variables.front().shards.front().synchronizer);
  const auto updates = [&] {
    const ClosedNetwork network =
        closed_network(compile(one_layer().model, one_layer().profile, cluster, strategy), cluster);
    REQUIRE(network.stations.back().name == "node4:cpu0 threads");
    return network.stations.back().demand.value();
  };
  CHECK_THAT(updates(), WithinRel(4e-3, 1e-6));
  ps.sync = true;
  ps.staleness = 2;
  CHECK_THAT(updates(), WithinRel(1e-3, 1e-3));
}

TEST_CASE("the closed form refuses what it does not describe", "[async]") {
  const Cluster cluster = lab_cluster(2, 1);
  const LabModel& lab = one_layer();
  const Plan reduced = compile(lab.model, lab.profile, cluster, all_reduced(lab.model, 2));
  CHECK_THROWS_AS(closed_network(reduced, cluster), PlanError);
  const Plan beside = compile(lab.model, lab.profile, cluster, on_server(lab.model, 2, {0, -1}));
  CHECK_THROWS_AS(closed_network(beside, cluster), PlanError);
  const Cluster pairs = lab_cluster(1, 2, {}, 1);
  const Plan shared = compile(lab.model, lab.profile, pairs, on_server(lab.model, 2, {1, -1}));
  CHECK_THROWS_AS(closed_network(shared, pairs), PlanError);
}
