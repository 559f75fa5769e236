// Real processes on this machine's loopback addresses: every result is checked in the run, so that a run that ends
// well has synchronized well.
#include "base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/testbed/small_run.hpp"

using namespace simsync;
using Catch::Matchers::Contains;

TEST_CASE("every builder runs for real and its results are right") {
  int port = 29'610;
  for (const std::string& builder : known_builders()) {
    SECTION(builder) {
      const Measurement measured = launch(test::small_plan(builder, 3), test::loopback(port++));
      CHECK(measured.steps.size() == 4);
      CHECK(measured.checked > 0);
      CHECK(measured.processors > 0.0);
      CHECK(measured.stolen >= 0.0);
      CHECK(measured.stolen < 1.0);
      // Six layer times of 1 ms cannot overlap each other.
      CHECK(measured.quantile(0.0) >= Seconds{0.0055});
    }
  }
}

TEST_CASE("shard groups and replica groups have communicators of their own") {
  int port = 29'670;
  for (const std::map<std::string, std::string>& options : {std::map<std::string, std::string>{{"group", "2"}},
                                                            {{"group", "2"}, {"stage", "2"}},
                                                            {{"group", "1"}},
                                                            {{"stage", "1"}, {"overlap_gather", "false"}},
                                                            {{"prefetch", "0"}}}) {
    const Measurement measured = launch(test::small_plan("fsdp", 4, options), test::loopback(port++));
    CHECK(measured.steps.size() == 4);
    CHECK(measured.checked > 0);
  }
}

TEST_CASE("servers apply every optimizer as the workers expect") {
  for (const Optimizer optimizer : {Optimizer::Sgd, Optimizer::Momentum, Optimizer::Adam}) {
    LaunchOptions options = test::loopback(29'650 + static_cast<int>(optimizer));
    options.run.optimizer = optimizer;
    CHECK(launch(test::small_plan("ps", 2), options).checked > 0);
  }
}

TEST_CASE("a transfer of several messages arrives whole, also where they do not divide its bytes") {
  int port = 29'663;
  for (const int messages : {7, 20'000}) {
    Plan plan = test::small_plan("ps", 2);
    for (Op& op : plan.ops)
      if (auto* moved = std::get_if<Transfer>(&op.body)) moved->messages = messages;
    CHECK(launch(plan, test::loopback(port++)).checked > 0);
  }
}

TEST_CASE("a slower device takes longer") {
  LaunchOptions options = test::loopback(29'660);
  options.slowdown = {1.0, 3.0};
  CHECK(launch(test::small_plan("ddp", 2), options).step() >= Seconds{0.0175});
}

TEST_CASE("a result that is wrong ends the run and names rank, value and position") {
  // The lab's sums are those of all ranks: a server that leaves out one is noticed.
  Plan plan = test::small_plan("ps", 2);
  test::replace(plan, HostAction::Sum, HostAction::Serve);
  CHECK_THROWS_AS(launch(plan, test::loopback(29'661)), WrongResult);
  CHECK_THROWS_WITH(launch(plan, test::loopback(29'664)),
                    Contains("rank") && Contains("holds") && Contains("at position 0 and should hold"));
}

TEST_CASE("workers that share a node with others do not talk to servers yet") {
  const auto lab = test::small_model();
  const Cluster cluster = test::lab_cluster(2, 2);
  const Strategy strategy = build_strategy("ps", test::request_for(lab.model, cluster, 4));
  const Plan plan = compile(lab.model, lab.profile, cluster, strategy);
  CHECK_THROWS_WITH(
      launch(plan, test::loopback(29'662)),
      "real runs with parameter servers take one worker per node so far: the plan has 4 workers on 2 nodes");
}
