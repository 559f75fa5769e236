// What must hold for every strategy: scaling, relabelling, determinism and bounds.
#include "sim/engine/flow_network.hpp"
#include "strategies/builders.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab_run.hpp"
#include "tests/support/small_problems.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

const std::vector<std::string> kStrategies{
    "ddp",           "horovod",  "mg-wfbp", "ps", "ps-load-balancing", "partitioned-ps", "all-reduce", "byteps", "p3",
    "bytescheduler", "poseidon", "tictac",  "bsp"};

/// Four layers of unequal size and time.
LabModel unequal(double time_scale = 1.0) {
  const double ms = 1e-3 * time_scale;
  return {{4e6, 2 * ms, 3 * ms}, {0, 1 * ms, 1 * ms}, {40e6, 4 * ms, 8 * ms}, {400e3, 1 * ms, 2 * ms}};
}

/// A cluster with every cost that there is; `k` times as fast.
Cluster costly(double k) {
  Cluster cluster =
      lab_cluster(3, 2, {.nic = k * 2e9, .nic_latency = 20e-6 / k, .port = k * 10e9, .port_latency = 4e-6 / k});
  cluster.links["pcie"].bandwidth = BytesPerSecond{k * 12e9};
  cluster.links["nic"].message_cost = Seconds{5e-6 / k};
  cluster.links["nic"].per_flow_cap = BytesPerSecond{k * 1.5e9};
  cluster.devices["GPU"].memory_bandwidth = BytesPerSecond{k * 300e9};
  cluster.devices["GPU"].peak["fp32"] = FlopsPerSecond{k * 10e12};
  cluster.devices["GPU"].launch = Seconds{5e-6 / k};
  cluster.groups[0].cpu = {.threads = 4,
                           .per_tensor = Seconds{30e-6 / k},
                           .update_rate = BytesPerSecond{k * 4e9},
                           .sum_rate = BytesPerSecond{k * 8e9}};
  cluster.collective.launch = Seconds{10e-6 / k};
  cluster.collective.per_step_inter = Seconds{3e-6 / k};
  cluster.collective.interference = 0.1;
  return cluster;
}

Strategy built(const std::string& name, const LabModel& lab, const Cluster& cluster, int workers) {
  return build_strategy(name, request_for(lab.model, cluster, workers));
}

}  // namespace

TEST_CASE("k times the rates and 1/k of the fixed times make 1/k of the step", "[engine][property]") {
  // Horovod's cycle is a time of the strategy, so it is scaled as well. P3 is left out: its workers are all alike, and
  // which of two messages that end within SimGrid's absolute precision of each other comes first, and with it the
  // whole schedule behind them, depends on the scale of time.
  for (const std::string& name : kStrategies) {
    if (name == "p3") continue;
    INFO(name);
    const auto step = [&](double k) {
      const LabModel lab = unequal(1.0 / k);
      const Cluster cluster = costly(k);
      Strategy strategy = built(name, lab, cluster, 6);
      strategy.graph.fusion.cycle = Seconds{strategy.graph.fusion.cycle.value() / k};
      return step_of(lab, cluster, strategy, Fidelity::Auto);
    };
    CHECK_THAT(4.0 * step(4.0), WithinRel(step(1.0), 1e-6));
  }
}

TEST_CASE("both solvers predict the same step", "[engine][property][network]") {
  // P3 is left out: which of many equal pieces goes first depends on ends that lie within rounding of each other.
  for (const std::string& name : kStrategies) {
    if (name == "p3") continue;
    INFO(name);
    const LabModel lab = unequal(1.0);
    const Cluster cluster = costly(1.0);
    const Strategy strategy = built(name, lab, cluster, 6);
    const auto by = [&](Solver solver) { return run(lab, cluster, strategy, {.solver = solver}).step.value(); };
    CHECK_THAT(by(Solver::Native), WithinRel(by(Solver::SimGrid), 1e-7));
  }
}

TEST_CASE("the same question has the same answer, whatever was asked before", "[engine][property]") {
  std::vector<Seconds> first;
  for (int round = 0; round < 3; ++round) {
    std::size_t at = 0;
    for (const std::string& name : kStrategies) {
      INFO(name << " in round " << round);
      const LabModel lab = unequal();
      const Cluster cluster = costly(1.0);
      const Prediction answer = run(lab, cluster, built(name, lab, cluster, 6));
      if (round == 0) first.insert(first.end(), answer.steps.begin(), answer.steps.end());
      for (const Seconds step : answer.steps) CHECK(step == first.at(at++));  // to the last bit
    }
    // Another number of questions in between, so that the clock stands elsewhere.
    const LabModel other = unequal(0.7 + 0.1 * round);
    (void)run(other, costly(1.0), built("ddp", other, costly(1.0), 6));
  }
}

TEST_CASE("halves of the clock's resolution are rounded alike, wherever a problem begins", "[engine][property]") {
  constexpr double kResolution = 0x1p-36;  // of doubles between 2^16 and 2^17
  FlowNetwork& network = simgrid_network();
  const auto time_of = [&](double delay) {
    network.begin({});
    network.after(Seconds{delay}, 0);
    Seconds end;
    network.run([&](FlowNetwork::Token) { end = network.now(); }, [] {});
    return end.value();
  };
  const double first = time_of(1.5 * kResolution);
  CHECK(first >= kResolution);
  for (int moved = 0; moved < 4; ++moved) {
    (void)time_of(kResolution);  // the last bit of the clock is another one
    CHECK(time_of(1.5 * kResolution) == first);
  }
}

TEST_CASE("a step that was found steady is the step of later iterations", "[engine][property]") {
  // Steps within 0.1 % of each other end a replay. Run on regardless, and the next ones must not leave that step again,
  // as they would if steps of different length took turns; nor does the last one, for it too has a next one in its way.
  // P3 and ByteScheduler are left out: which piece is next in their credit differs from step to step, by a percent or
  // two of the step, and the mean of the later ones is the answer.
  for (const std::string& name : kStrategies) {
    if (name == "p3" || name == "bytescheduler") continue;
    INFO(name);
    const LabModel lab = unequal();
    const Cluster cluster = costly(1.0);
    const Strategy strategy = built(name, lab, cluster, 6);
    const Prediction stopped = run(lab, cluster, strategy);
    const Prediction on = run(lab, cluster, strategy, {.max_iterations = 10, .convergence = -1.0});
    REQUIRE(stopped.steady);
    REQUIRE(on.steps.size() == 10);
    for (std::size_t k = stopped.steps.size(); k < on.steps.size(); ++k)
      CHECK_THAT(on.steps[k].value(), WithinRel(stopped.step.value(), 2e-3));
  }
}

TEST_CASE("which of the nodes is the slow one does not matter", "[engine][property]") {
  // All-reduce treats all nodes alike: the straggler first, in the middle or last.
  const LabModel lab = unequal();
  std::vector<double> steps;
  for (const int slow : {0, 2, 4}) {
    Cluster cluster = lab_cluster(1, 2, {.nic = 2e9, .nic_latency = 20e-6});
    const NodeGroup group = cluster.groups.front();
    cluster.groups.clear();
    for (int node = 0; node < 5; ++node) {
      cluster.groups.push_back(group);
      cluster.groups.back().name.append(std::to_string(node));
      if (node == slow) cluster.groups.back().compute_slowdown = 1.7;
    }
    steps.push_back(step_of(lab, cluster, all_reduced(lab.model, 10)));
  }
  CHECK_THAT(steps[1], WithinRel(steps[0], 1e-9));
  CHECK_THAT(steps[2], WithinRel(steps[0], 1e-9));
}

TEST_CASE("a step is at least its compute and its busiest link and at most everything in a row", "[engine][property]") {
  // Lower: the slowest device's compute; for a link, all bytes that cross it in a step at its full rate. Upper: each
  // recorded op alone, one after another, without any overlap at all.
  for (const std::string& name : kStrategies) {
    INFO(name);
    const LabModel lab = unequal();
    const Cluster cluster = costly(1.0);
    const Prediction prediction =
        run(lab, cluster, built(name, lab, cluster, 6), {.fidelity = Fidelity::Fluid, .record = true});
    const double elapsed = prediction.iteration_end.back().value();
    const auto iterations = static_cast<double>(prediction.steps.size());
    CHECK(prediction.step.value() >= prediction.compute.value() * (1.0 - 1e-9));
    REQUIRE(!prediction.links.empty());
    for (const LinkUse& link : prediction.links) CHECK(link.utilization <= 1.0 + 1e-9);
    double serial = 0.0;
    for (const Span& span : prediction.spans) serial += (span.end - span.start).value();
    CHECK(elapsed <= serial * (1.0 + 1e-9));
    CHECK(prediction.step.value() <= serial / iterations * 1.5);
  }
}
