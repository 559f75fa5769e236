// Real processes on this machine's loopback addresses: every result is checked in the run, so that a run that ends
// well has synchronized well.
#include <algorithm>

#include "base/error.hpp"
#include "hw/run/buffers.hpp"
#include "tests/support/catch.hpp"
#include "tests/testbed/small_run.hpp"

using namespace simsync;

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

TEST_CASE("every primitive runs for real, among all ranks and in groups, from every root") {
  // Five ranks and two groups, of 0, 2, 4 and of 1, 3. Each op follows the one before and the last one of all ranks.
  constexpr int kRanks = 5;
  Plan plan;
  plan.model = plan.strategy = "collectives";
  plan.set_ranks(test::lab_cluster(kRanks, 1).workers(kRanks));
  plan.groupings.emplace_back("parity", std::vector{0, 1, 0, 1, 0});
  plan.groupings.emplace_back("pair", std::vector{-1, 0, -1, 0, -1});
  const GroupingId pair = kWholeJob + 2;
  OpId of_all = -1;
  const auto add = [&](GroupingId grouping, CollectivePrimitive primitive, int root, double bytes) {
    Op op;
    op.grouping = grouping;
    op.body = Collective{.primitive = primitive, .root = root, .bytes = bytes};
    op.reason = {Phase::Synchronize, -1, name_of(primitive)};
    const auto id = static_cast<OpId>(plan.ops.size());
    if (id > 0) op.after = {{id - 1, 0}};
    if (of_all >= 0 && of_all < id - 1) op.after.push_back({of_all, 0});
    if (grouping != pair) of_all = id;
    plan.ops.push_back(std::move(op));
  };
  for (const double bytes : {4.0, 40'004.0, 2'000'004.0}) {
    for (const GroupingId grouping : {kWholeJob, kWholeJob + 1}) {
      for (const auto primitive : {CollectivePrimitive::AllReduce, CollectivePrimitive::ReduceScatter,
                                   CollectivePrimitive::AllGather, CollectivePrimitive::AllToAll})
        add(grouping, primitive, 0, bytes);
      for (int root = 0; root < (grouping == kWholeJob ? kRanks : 2); ++root) {
        add(grouping, CollectivePrimitive::Broadcast, root, bytes);
        add(grouping, CollectivePrimitive::Reduce, root, bytes);
      }
    }
    for (const int root : {0, 1}) add(pair, CollectivePrimitive::SendReceive, root, bytes);
  }
  plan.ops.front().after = {{static_cast<OpId>(plan.ops.size()) - 1, 1}, {of_all, 1}};
  const Measurement measured = launch(plan, test::loopback(29'680));
  CHECK(measured.steps.size() == 4);
  // In each of 4 steps, one to warm up and a last one in which every value is compared, a rank checks each op that it
  // takes part in: of each of three sizes 14 ops of all five, 8 ops of a group for each of the five, 2 ops of the pair
  // for two.
  CHECK(measured.checked == 6 * 3 * (14 * 5 + 8 * 5 + 2 * 2));
}

TEST_CASE("a broadcast that leaves from another root than planned is noticed") {
  // Of the same sizes, but with another rank's values.
  Plan plan = test::small_plan("ddp", 2);
  for (Op& op : plan.ops)
    if (auto* all = std::get_if<Collective>(&op.body)) all->primitive = CollectivePrimitive::Broadcast;
  const Roles roles(plan);
  Buffers own(roles, 1, Optimizer::Sgd, 1);
  for (std::size_t id = 0; id < plan.ops.size(); ++id) {
    if (plan.ops[id].kind() != OpKind::Collective) continue;
    const CollectiveBuffers buffers = own.collective(static_cast<OpId>(id), 0, true);
    std::copy(buffers.in.begin(), buffers.in.end(), buffers.out.begin());  // its own, not those of rank 0
    CHECK_THROWS_AS(own.check_collective(static_cast<OpId>(id), 0, true), WrongResult);
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
  CHECK_THROWS_WITH(launch(plan, test::loopback(29'664)), ContainsSubstring("rank") && ContainsSubstring("holds") &&
                                                              ContainsSubstring("at position 0 and should hold"));
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
