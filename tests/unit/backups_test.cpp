// Steps that go on without the gradients of the latest workers.
#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.hpp"
#include "sim/plan/closed_network.hpp"
#include "strategies/builders.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab_run.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

constexpr double kMegabyte = 1e6;
constexpr double kNumber = 4.0;  ///< bytes that take no time anywhere

/// Forward and backward take 2 ms each.
LabModel one_layer(double bytes, double variation = 0.0) {
  LabModel lab{{.bytes = bytes, .forward = 2e-3, .backward = 2e-3}};
  lab.profile.variation = variation;
  return lab;
}

/// Variables on one server, read at the start of a step as TensorFlow does.
Strategy with_backups(const Model& model, int workers, int backups, Place server) {
  Strategy strategy = on_server(model, workers, server);
  strategy.graph.pull_at_step_start = true;
  strategy.graph.backups = backups;
  return strategy;
}

/// `fast` nodes, then `slow` ones that compute `slowdown` times as long, then a server.
Cluster with_stragglers(int fast, int slow, double slowdown, double nic = kNothing) {
  Cluster cluster = lab_cluster(fast, 1, {.nic = nic}, 1);
  NodeGroup late = cluster.groups.front();
  late.name = "slow";
  late.count = slow;
  late.compute_slowdown = slowdown;
  cluster.groups.insert(cluster.groups.begin() + 1, late);
  return cluster;
}

Prediction run_backups(const LabModel& lab, const Cluster& cluster, int workers, int backups, int steps = 60) {
  return run(lab, cluster, with_backups(lab.model, workers, backups, {workers, -1}), {.steps_per_worker = steps});
}

double mean(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

/// What a worker computes in a step.
double drawn(const Plan& plan, int rank, int step) {
  double sum = 0.0;
  for (const Op& op : plan.ops)
    if (op.kind() == OpKind::Compute) sum += compute_time(plan, op, rank, step).value();
  return sum;
}

/// The `needed`-th of the workers' draws for a step, from the fastest on.
double order_statistic(const Plan& plan, int needed, int step) {
  std::vector<double> draws;
  for (int rank = 0; rank < plan.rank_count(); ++rank) draws.push_back(drawn(plan, rank, step));
  std::sort(draws.begin(), draws.end());
  return draws[static_cast<std::size_t>(needed) - 1];
}

/// When steps end where nothing but compute takes time: whoever ends the current step waits for the others that it
/// needs; whoever ends an older one begins the current one.
std::vector<double> ends_on_paper(const Plan& plan, int steps) {
  std::set<std::pair<double, int>> computing;
  std::vector<int> step_of(static_cast<std::size_t>(plan.rank_count()), 0);
  const auto begin = [&](int rank, int step, double now) {
    step_of[static_cast<std::size_t>(rank)] = step;
    computing.emplace(now + drawn(plan, rank, step), rank);
  };
  for (int rank = 0; rank < plan.rank_count(); ++rank) begin(rank, 0, 0.0);
  std::vector<double> ends;
  std::vector<int> there;
  while (static_cast<int>(ends.size()) < steps) {
    const auto [now, rank] = *computing.begin();
    computing.erase(computing.begin());
    const auto current = static_cast<int>(ends.size());
    if (step_of[static_cast<std::size_t>(rank)] < current) {
      begin(rank, current, now);
      continue;
    }
    there.push_back(rank);
    if (static_cast<int>(there.size()) < plan.rank_count() - plan.progress.backups) continue;
    ends.push_back(now);
    for (const int other : there) begin(other, current + 1, now);
    there.clear();
  }
  return ends;
}

std::string refusal(const Model& model, const Cluster& cluster, const Strategy& strategy) {
  try {
    check(strategy, model, cluster);
  } catch (const PlanError& e) {
    return e.what();
  }
  return {};
}

}  // namespace

TEST_CASE("no backups are synchronous training", "[backups]") {
  const LabModel lab = one_layer(kMegabyte);
  const Cluster cluster = with_stragglers(3, 1, 4.0, 1e9);
  const auto built = [&](const std::map<std::string, std::string>& options) {
    return build_strategy("ps", {.model = lab.model, .cluster = cluster, .workers = 4, .batch = 1, .options = options});
  };
  CHECK(built({{"backups", "0"}}) == built({}));
  CHECK(mode_of(built({{"backups", "0"}})) == "sync");
  CHECK(mode_of(built({{"backups", "1"}})) == "backup");
  CHECK(run(lab, cluster, built({{"backups", "0"}})).step == run(lab, cluster, built({})).step);
}

TEST_CASE("a step leaves a straggler behind, and is as long as without it", "[backups]") {
  const LabModel lab = one_layer(kNumber);
  const double without = run_backups(lab, lab_cluster(3, 1, {.nic = kNothing}, 1), 3, 0).step.value();
  CHECK_THAT(without, WithinRel(4e-3, 1e-5));
  const Prediction left = run_backups(lab, with_stragglers(3, 1, 4.0), 4, 1, 400);
  CHECK_THAT(left.step.value(), WithinRel(without, 1e-6));
  CHECK_THAT(left.compute.value(), WithinRel(4e-3, 1e-12));
  REQUIRE(left.rank_steps.size() == 4);
  CHECK_THAT(left.rank_steps[0].value(), WithinRel(4e-3, 1e-5));
  CHECK_THAT(left.rank_steps[3].value(), WithinRel(16e-3, 1e-3));
  // One gradient of it to every 4 x 3 of the others.
  CHECK_THAT(left.dropped, WithinRel(1.0 / 13.0, 0.02));
  // Without a worker to spare the straggler sets the pace.
  CHECK_THAT(run_backups(lab, with_stragglers(3, 1, 4.0), 4, 0).step.value(), WithinRel(16e-3, 1e-5));
}

TEST_CASE("workers that are late by many steps hold up nobody", "[backups]") {
  LabModel lab{{.forward = 1e-3, .backward = 1e-3},  // the first layer has nothing to read
               {.bytes = kNumber, .forward = 1e-3, .backward = 1e-3}};
  for (const double slowdown : {1.5, 7.3, 1000.0}) {
    const Prediction left = run_backups(lab, with_stragglers(4, 2, slowdown), 6, 2, 200);
    CHECK_THAT(left.step.value(), WithinRel(4e-3, 1e-5));
    if (slowdown < 10.0) CHECK_THAT(left.rank_steps[5].value(), WithinRel(slowdown * 4e-3, 0.01));
  }
  // A third straggler is one too many: it is needed in every step.
  CHECK_THAT(run_backups(lab, with_stragglers(3, 3, 7.3), 6, 2).step.value(), WithinRel(7.3 * 4e-3, 1e-5));
}

TEST_CASE("late gradients travel, and take no time of additions", "[backups]") {
  const LabModel lab = one_layer(kMegabyte);
  // Push and pull of 1 MB at 1 GB/s through the server's link: 4 + n + n ms in lock step. What comes late is in the way
  // of other pushes.
  const double three = run_backups(lab, lab_cluster(3, 1, {.nic = 1e9}, 1), 3, 0).step.value();
  const double four = run_backups(lab, lab_cluster(4, 1, {.nic = 1e9}, 1), 4, 0).step.value();
  CHECK_THAT(three, WithinRel(10e-3, 1e-5));
  CHECK_THAT(four, WithinRel(12e-3, 1e-5));
  const double left = run_backups(lab, with_stragglers(3, 1, 4.0, 1e9), 4, 1).step.value();
  CHECK(left > three);
  CHECK(left < four);
  // 1 ms for every addition of 1 MB, one after another: four of them, or two.
  Cluster adds = lab_cluster(4, 1, {.nic = kNothing}, 1);
  adds.groups.back().cpu.sum_rate = BytesPerSecond{1e9};
  CHECK_THAT(run_backups(lab, adds, 4, 0).step.value(), WithinRel(8e-3, 1e-3));
  const Prediction two = run_backups(lab, adds, 4, 2);
  CHECK_THAT(two.step.value(), WithinRel(6e-3, 1e-3));
  CHECK_THAT(two.dropped, WithinRel(0.5, 0.02));
}

TEST_CASE("where late workers are back in time a step is an order statistic of their compute", "[backups]") {
  // Compute lies within 4 ms (1 +- 0.35), and the server takes 4 ms for its update: who is late ends in that time, and
  // begins the next step with the others.
  constexpr double kVariation = 0.2;
  constexpr int kWorkers = 5;
  const LabModel lab = one_layer(kNumber, kVariation);
  Cluster cluster = lab_cluster(kWorkers, 1, {.nic = kNothing}, 1);
  cluster.groups.back().cpu.update_rate = BytesPerSecond{kNumber / 4e-3};
  for (const int backups : {1, 2, 4}) {
    constexpr int kSteps = 2000;
    const int needed = kWorkers - backups;
    const Plan plan =
        compile(lab.model, lab.profile, cluster, with_backups(lab.model, kWorkers, backups, {kWorkers, -1}));
    const Prediction left = replay(plan, cluster, {.steps_per_worker = kSteps});
    REQUIRE(left.steps.size() == kSteps);
    double furthest = 0.0;
    for (int k = 0; k < kSteps; ++k)
      furthest = std::max(furthest, std::abs(left.steps[static_cast<std::size_t>(k)].value() -
                                             order_statistic(plan, needed, k) - 4e-3));
    CHECK(furthest < 1e-10);
    // The m-th of n uniform draws is on average m / (n + 1) of their range. 1,600 steps count, each with a standard
    // deviation of at most 0.2.
    const double drawn = 1.0 + std::sqrt(3.0) * kVariation * (2.0 * needed / (kWorkers + 1) - 1.0);
    CHECK_THAT(left.step.value(), WithinRel(4e-3 * (1.0 + drawn), 0.01));
    CHECK_THAT(left.dropped, WithinRel(static_cast<double>(backups) / kWorkers, 0.01));
  }
}

TEST_CASE("a late worker finishes what it computes, and goes on with the newest step", "[backups]") {
  constexpr int kWorkers = 6;
  constexpr int kSteps = 500;
  const LabModel lab = one_layer(kNumber, 0.3);
  const Cluster cluster = lab_cluster(kWorkers, 1, {.nic = kNothing}, 1);
  for (const int backups : {1, 3, 5}) {
    const Plan plan =
        compile(lab.model, lab.profile, cluster, with_backups(lab.model, kWorkers, backups, {kWorkers, -1}));
    const Prediction left = replay(plan, cluster, {.steps_per_worker = kSteps});
    const auto ends = ends_on_paper(plan, kSteps);
    std::vector<double> at_best;
    std::vector<double> in_lock_step;
    double furthest = 0.0;
    double now = 0.0;
    for (int k = 0; k < kSteps; ++k) {
      now += left.steps[static_cast<std::size_t>(k)].value();
      furthest = std::max(furthest, std::abs(now - ends[static_cast<std::size_t>(k)]));
      at_best.push_back(order_statistic(plan, kWorkers - backups, k));
      in_lock_step.push_back(order_statistic(plan, kWorkers, k));
    }
    CHECK(furthest < 1e-9);  // of some 2 s
    // Work that is thrown away is still done: slower than if who is late stopped at once, faster than waiting for all.
    CHECK(left.step.value() > mean(at_best));
    CHECK(left.step.value() < mean(in_lock_step));
    CHECK(replay(plan, cluster, {.steps_per_worker = kSteps}).step == left.step);
  }
}

TEST_CASE("workers of one node count one by one", "[backups]") {
  const LabModel lab = one_layer(kNumber);
  const Cluster cluster = lab_cluster(2, 2, {.nic = kNothing}, 1);
  const auto step = [&](const char* builder, const std::map<std::string, std::string>& options) {
    return run(lab, cluster,
               build_strategy(builder,
                              {.model = lab.model, .cluster = cluster, .workers = 4, .batch = 1, .options = options}));
  };
  const Prediction left = step("ps", {{"backups", "3"}});
  CHECK_THAT(left.step.value(), WithinRel(4e-3, 1e-3));
  CHECK_THAT(left.dropped, WithinRel(0.75, 0.02));
  for (const char* order : {"tic", "random"})
    CHECK_THAT(step("tictac", {{"backups", "1"}, {"order", order}}).step.value(), WithinRel(4e-3, 1e-3));
}

TEST_CASE("the plan says how many gradients an update can do without", "[backups]") {
  const LabModel lab = one_layer(kMegabyte);
  Cluster cluster = lab_cluster(4, 1, {}, 1);
  cluster.groups.back().cpu.per_tensor = Seconds{1e-4};
  const Plan plan = compile(lab.model, lab.profile, cluster, with_backups(lab.model, 4, 1, {4, -1}));
  const auto of_phase = [&](Phase phase) {
    return *std::find_if(plan.ops.begin(), plan.ops.end(), [&](const Op& op) { return op.reason.phase == phase; });
  };
  CHECK(plan.progress.backups == 1);
  CHECK(of_phase(Phase::Update).after.front().may_miss == 1);
  CHECK(of_phase(Phase::Aggregate).after.front().may_miss == 0);
  CHECK(of_phase(Phase::Aggregate).host().late == Seconds{1e-4});
  REQUIRE(plan.progress.global_step >= 0);
  CHECK(title_of(plan, plan.ops[static_cast<std::size_t>(plan.progress.global_step)]) == "global step");
  CHECK(plan.ops[static_cast<std::size_t>(plan.progress.step_end)].grouping == kEachRank);
  CHECK_THROWS_AS(closed_network(plan, cluster), PlanError);
}

TEST_CASE("backups need servers that take every gradient by itself, in every step", "[backups]") {
  const LabModel lab = one_layer(kMegabyte);
  const Cluster cluster = lab_cluster(4, 1, {}, 1);
  const Strategy good = with_backups(lab.model, 4, 1, {4, -1});
  CHECK(refusal(lab.model, cluster, good).empty());
  const auto refused = [&](const auto& change) {
    Strategy strategy = good;
    change(strategy, std::get<PsSynchronizer>(strategy.variables[0].shards[0].synchronizer));
    return refusal(lab.model, cluster, strategy);
  };
  const std::string variable = "strategy 'lab': variable 'layer0/weight' ";
  const std::string why = "; backups leave the latest workers out of a step";
  CHECK(refused([](Strategy& s, PsSynchronizer&) { s.graph.backups = 4; }) ==
        "strategy 'lab': 4 backups among 4 workers, expected from 0 to 3");
  CHECK(refused([](Strategy& s, PsSynchronizer&) { s.graph.backups = -1; }) ==
        "strategy 'lab': -1 backups among 4 workers, expected from 0 to 3");
  CHECK(refused([](Strategy& s, PsSynchronizer&) { s.graph.slack = 1; }) ==
        "strategy 'lab': backups and slack exclude each other");
  const std::string servers =
      "strategy 'lab': backups need servers that update (update_at: server), and workers that read at the start of a "
      "step (pull_at_step_start)";
  CHECK(refused([](Strategy& s, PsSynchronizer&) { s.graph.update_at = UpdateAt::Worker; }) == servers);
  CHECK(refused([](Strategy& s, PsSynchronizer&) { s.graph.pull_at_step_start = false; }) == servers);
  CHECK(refused([](Strategy&, PsSynchronizer& ps) { ps.sync = false; }) ==
        variable + "needs sync = true and staleness = 0" + why);
  CHECK(refused([](Strategy&, PsSynchronizer& ps) { ps.staleness = 2; }) ==
        variable + "needs sync = true and staleness = 0" + why);
  CHECK(refused([](Strategy&, PsSynchronizer& ps) { ps.local_aggregation = true; }) ==
        variable + "has gradients summed on hosts (local_aggregation), where each has to count by itself" + why);
  CHECK(refused([](Strategy&, PsSynchronizer& ps) { ps.local_replication = true; }) ==
        variable + "has copies on hosts (local_replication), which the step would wait for" + why);
  CHECK(refused([](Strategy& s, PsSynchronizer&) {
          s.variables[0].shards[0].synchronizer = AllReduceSynchronizer{};
        }) == variable + "is on no parameter server: a collective needs all workers" + why);
}
