// Workers that do not wait for each other in every step, as real processes on loopback addresses.
#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/testbed/small_run.hpp"

using namespace simsync;

namespace {

constexpr int kWorkers = 3;
constexpr int kSteps = 40;  // the first worker is through when the slow one has ended three or four

/// The last worker takes ten times as long to compute: 60 ms against 6.
LaunchOptions with_straggler(int port) {
  LaunchOptions options = test::loopback(port);
  options.run.iterations = kSteps;
  options.slowdown = {1.0, 1.0, 10.0};
  return options;
}

/// With workers of which one is slow.
Measurement run_with(Optimizer optimizer, const Plan& plan, int port) {
  LaunchOptions options = with_straggler(port);
  options.run.optimizer = optimizer;
  return launch(plan, options);
}

}  // namespace

TEST_CASE("asynchronous workers wait for nobody, and servers hold what was pushed") {
  int port = 29'670;
  for (const Optimizer optimizer : {Optimizer::Sgd, Optimizer::Momentum, Optimizer::Adam}) {
    const Measurement measured = run_with(optimizer, test::small_plan("ps", kWorkers, {{"sync", "false"}}), port++);
    REQUIRE(measured.rank_steps.size() == kWorkers);
    CHECK(measured.checked > kWorkers * kSteps);
    CHECK(measured.rank_steps[2] >= Seconds{0.059});
    CHECK(1.5 * measured.rank_steps[0] < measured.rank_steps[2]);
    CHECK(measured.step() < measured.rank_steps[2]);
    const double all = std::accumulate(measured.staleness.begin(), measured.staleness.end(), 0.0);
    CHECK_THAT(all, WithinRel(1.0, 1e-9));
    // In each step of the slow one the others end several.
    CHECK(measured.staleness.size() > 4);
  }
}

TEST_CASE("bounded staleness ties the fast workers to the slow one, and what they read is not older than it allows") {
  int port = 29'680;
  for (const char* staleness : {"1", "4"}) {
    const Plan plan = test::small_plan("ps", kWorkers, {{"staleness", staleness}});
    const Measurement measured = launch(plan, with_straggler(port++));
    REQUIRE(measured.rank_steps.size() == kWorkers);
    CHECK(measured.checked > kWorkers * kSteps);
    for (const Seconds step : measured.rank_steps) {
      CHECK(step >= Seconds{0.055});
      CHECK_THAT(step.value(), WithinRel(measured.rank_steps[2].value(), 0.2));
    }
  }
}

TEST_CASE("in lock step all wait for the worker that draws the longest step") {
  Plan plan = test::small_plan("ps", kWorkers);
  plan.draws.step_variation = 0.5;
  LaunchOptions options = test::loopback(29'698);
  options.run.iterations = kSteps;
  options.slowdown.assign(kWorkers, 5.0);
  const Measurement measured = launch(plan, options);
  CHECK(measured.rank_steps.empty());
  REQUIRE(measured.steps.size() == kSteps);
  double longest = 0.0;
  for (int k = options.run.warm_up; k < options.run.warm_up + kSteps; ++k) {
    double most = 0.0;
    for (int rank = 0; rank < kWorkers; ++rank) {
      double compute = 0.0;
      for (const Op& op : plan.ops)
        if (op.kind() == OpKind::Compute) compute += options.slowdown.front() * compute_time(plan, op, rank, k).value();
      most = std::max(most, compute);
    }
    longest += most / kSteps;
  }
  CHECK(longest > 1.3 * 0.03);  // 30 ms without variation
  CHECK(measured.step().value() > 0.99 * longest);
  CHECK_THAT(measured.step().value(), !WithinRel(measured.quantile(0.5).value(), 1e-9));  // the mean
}

TEST_CASE("a bound by worker clocks ties the fast workers to the slow one") {
  const Plan plan = test::small_plan("ps", kWorkers, {{"sync", "false"}, {"slack", "2"}});
  const Measurement measured = launch(plan, with_straggler(29'685));
  REQUIRE(measured.rank_steps.size() == kWorkers);
  for (const Seconds step : measured.rank_steps)
    CHECK_THAT(step.value(), WithinRel(measured.rank_steps[2].value(), 0.2));
}

TEST_CASE("a step leaves the slow worker behind, and servers hold what came in time") {
  int port = 29'692;
  for (const Optimizer optimizer : {Optimizer::Sgd, Optimizer::Momentum, Optimizer::Adam}) {
    const Measurement measured = run_with(optimizer, test::small_plan("ps", kWorkers, {{"backups", "1"}}), port++);
    REQUIRE(measured.rank_steps.size() == kWorkers);
    CHECK(measured.has_backups);
    CHECK(measured.steps.size() == kSteps);
    CHECK(measured.rank_steps[2] >= Seconds{0.059});
    CHECK(measured.step() >= Seconds{0.006});
    CHECK(1.5 * measured.step() < measured.rank_steps[2]);
    CHECK(measured.checked > 2 * kSteps);
    CHECK(measured.checked < 3 * 3 * kSteps);  // the slow one reads less often
  }
}

TEST_CASE("reads in an order of their own find the newest step, too") {
  const Plan plan = test::small_plan("tictac", kWorkers, {{"backups", "2"}});
  const Measurement measured = launch(plan, with_straggler(29'695));
  CHECK(measured.has_backups);
  CHECK(measured.step() < Seconds{0.059});
}

TEST_CASE("values older than the staleness allows end the run") {
  // Nothing is ever applied: from the second step on one update may be missing, and two are.
  Plan plan = test::small_plan("ps", 2, {{"staleness", "1"}});
  test::replace(plan, HostAction::Apply, HostAction::Serve);
  CHECK_THROWS_AS(launch(plan, test::loopback(29'690)), WrongResult);
}

TEST_CASE("a gradient that is not applied ends a run whose order is that of arrival") {
  int port = 29'700;
  for (const char* option : {"sync", "backups"}) {
    Plan plan = test::small_plan("ps", 2, {{option, option == std::string("sync") ? "false" : "1"}});
    test::replace(plan, HostAction::Apply, HostAction::Serve, 100.0);
    CHECK_THROWS_AS(launch(plan, test::loopback(port++)), WrongResult);
  }
}
