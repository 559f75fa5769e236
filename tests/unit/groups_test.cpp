// Groups of ranks: who is in which, which share a rank, and collectives of several groups at a time.
#include <algorithm>
#include <array>
#include <functional>
#include <stdexcept>

#include "base/error.hpp"
#include "base/random.hpp"
#include "platforms/reader.hpp"
#include "sim/engine/engine.hpp"
#include "sim/plan/alike_nodes.hpp"
#include "sim/plan/compile.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab.hpp"

using namespace simsync;
using namespace simsync::test;
using Catch::Matchers::WithinRel;
using Primitive = CollectivePrimitive;

namespace {

std::vector<int> listed(std::span<const int> numbers) {
  return {numbers.begin(), numbers.end()};
}

/// A plan of all GPUs of a cluster, without ops.
Plan plan_on(const Cluster& cluster) {
  Plan plan;
  plan.set_ranks(cluster.workers(cluster.gpu_count()));
  return plan;
}

GroupingId add_grouping(Plan& plan, const std::string& name, const std::function<int(int)>& group_of) {
  std::vector<int> groups;
  for (int rank = 0; rank < plan.rank_count(); ++rank) groups.push_back(group_of(rank));
  plan.groupings.emplace_back(name, std::move(groups));
  return static_cast<GroupingId>(plan.groupings.size()) - 1;
}

OpId add_collective(Plan& plan, GroupingId grouping, Primitive primitive, double bytes, std::vector<After> after = {}) {
  Op op;
  op.grouping = grouping;
  op.after = std::move(after);
  op.body = Collective{
      .primitive = primitive, .algorithm = CollectiveAlgorithm::Ring, .protocol = {}, .bytes = bytes, .setup = {}};
  plan.ops.push_back(std::move(op));
  return static_cast<OpId>(plan.ops.size()) - 1;
}

double time_of(const Plan& plan, const Cluster& cluster, Fidelity fidelity) {
  check(plan);
  return replay(plan, cluster, {.fidelity = fidelity, .max_iterations = 1}).step.value();
}

}  // namespace

TEST_CASE("a grouping knows the ranks of its groups", "[groups]") {
  const Grouping odd("odd", {-1, 0, -1, 1, -1, 0});
  CHECK(odd.count() == 2);
  CHECK(listed(odd.ranks(0)) == std::vector{1, 5});
  CHECK(listed(odd.ranks(1)) == std::vector{3});
  CHECK(odd.group_of(2) == -1);
  CHECK(Grouping("none", {-1, -1}).count() == 0);
  CHECK_THROWS_AS(Grouping("gap", {0, 2}), std::logic_error);
}

TEST_CASE("a part of the ranks has the groups that are left, in their order", "[groups]") {
  const std::vector<Grouping> all{{"pairs", {0, 0, 1, 1, 2, 2}}, {"odd", {-1, 0, -1, 1, -1, 0}}};
  const auto some = among(all, {2, 4, 5});
  CHECK(some[0].name() == "pairs");
  CHECK(some[0].count() == 2);
  CHECK(listed(some[0].ranks(0)) == std::vector{0});
  CHECK(listed(some[0].ranks(1)) == std::vector{1, 2});
  CHECK(some[1].count() == 1);
  CHECK(listed(some[1].ranks(0)) == std::vector{2});
}

TEST_CASE("groups that share a rank, whichever way it is asked", "[groups]") {
  const std::vector<Grouping> all{{"pairs", {0, 0, 1, 1, 2, 2}}, {"odd", {-1, 0, -1, 1, -1, 0}}};
  const SharedRanks shared(all);
  CHECK(listed(shared.with(0, 0, 1)) == std::vector{0});
  CHECK(listed(shared.with(0, 1, 1)) == std::vector{1});
  CHECK(listed(shared.with(1, 0, 0)) == std::vector{0, 2});
  CHECK(listed(shared.with(0, 2, 0)) == std::vector{2});
}

TEST_CASE("every group runs its own ring", "[groups][collective]") {
  // p ranks of one group on p nodes: the closed forms of a ring, however many groups there are beside it.
  //   reduce-scatter (p-1)/p S/B + (p-1) a, all-reduce twice that, all-gather of S from each (p-1) S/B + (p-1) a
  constexpr double kRate = 1e9;
  constexpr double kLatency = 1e-4;
  constexpr double kBytes = 64e6;
  const Cluster cluster = lab_cluster(64, 1, {.nic = kRate, .nic_latency = kLatency});
  for (int p = 2; p <= 64; p *= 2) {
    for (const Fidelity fidelity : {Fidelity::Steps, Fidelity::Fluid}) {
      const auto time = [&](Primitive primitive) {
        Plan plan = plan_on(cluster);
        add_collective(plan, add_grouping(plan, "shard", [&](int rank) { return rank / p; }), primitive, kBytes);
        return time_of(plan, cluster, fidelity);
      };
      const double scatter = (p - 1) * (kBytes / p / kRate + kLatency);
      INFO(p << " ranks, fidelity " << static_cast<int>(fidelity));
      CHECK_THAT(time(Primitive::ReduceScatter), WithinRel(scatter, 1e-6));
      CHECK_THAT(time(Primitive::AllReduce), WithinRel(2.0 * scatter, 1e-6));
      CHECK_THAT(time(Primitive::AllGather), WithinRel((p - 1) * (kBytes / kRate + kLatency), 1e-6));
    }
  }
}

TEST_CASE("groups at a time share the links that they cross", "[groups][collective]") {
  // 4 nodes of 2 GPUs. GPU i of all nodes is a group: a ring of 4, 2 x 3/4 S out of every node for each of the two.
  // Alone one takes 1.5 S/B, both 3 S/B.
  const Cluster cluster = lab_cluster(4, 2, {.nic = 1e9, .port = kNothing});
  for (const Fidelity fidelity : {Fidelity::Steps, Fidelity::Fluid}) {
    Plan both = plan_on(cluster);
    add_collective(both, add_grouping(both, "replica", [](int rank) { return rank % 2; }), Primitive::AllReduce, 1e9);
    CHECK_THAT(time_of(both, cluster, fidelity), WithinRel(3.0, 1e-6));
    Plan one = plan_on(cluster);
    add_collective(one, add_grouping(one, "first", [](int rank) { return rank % 2 == 0 ? 0 : -1; }),
                   Primitive::AllReduce, 1e9);
    CHECK_THAT(time_of(one, cluster, fidelity), WithinRel(1.5, 1e-6));
  }
}

TEST_CASE("replica groups of hybrid sharding have a NIC each", "[groups][collective]") {
  // 4 nodes of 8 GPUs and 8 NICs of 1 GB/s; GPU i of all nodes is replica group i. An all-reduce of 1 GB on one NIC
  // takes 2 x 3/4 s, whether one group runs it or all eight at the same time; the channels of a collective, which
  // spread a ring over all GPUs of a node on all NICs, add nothing to that.
  Cluster cluster = lab_cluster(4, 8, {.nic = 1e9, .port = kNothing});
  NodeGroup& nodes = cluster.groups.front();
  nodes.nics = 8;
  cluster.collective.channels = 8;
  const auto time = [&](const std::function<int(int)>& group_of, Fidelity fidelity) {
    Plan plan = plan_on(cluster);
    add_collective(plan, add_grouping(plan, "replica", group_of), Primitive::AllReduce, 1e9);
    return time_of(plan, cluster, fidelity);
  };
  const auto each = [](int rank) { return rank % 8; };
  const auto only = [](std::vector<int> gpus) {
    return [gpus](int rank) {
      const auto at = std::find(gpus.begin(), gpus.end(), rank % 8);
      return at == gpus.end() ? -1 : static_cast<int>(at - gpus.begin());
    };
  };
  for (const Fidelity fidelity : {Fidelity::Steps, Fidelity::Fluid, Fidelity::Folded}) {
    CHECK_THAT(time(each, fidelity), WithinRel(1.5, 1e-6));
    CHECK_THAT(time(only({3}), fidelity), WithinRel(1.5, 1e-6));
  }
  // With 4 NICs GPUs 0 and 1 share one: both groups together take twice as long, those of GPUs 0 and 2 do not.
  nodes.nics = 4;
  for (const Fidelity fidelity : {Fidelity::Steps, Fidelity::Fluid, Fidelity::Folded}) {
    CHECK_THAT(time(only({0, 1}), fidelity), WithinRel(3.0, 1e-6));
    CHECK_THAT(time(only({0, 2}), fidelity), WithinRel(1.5, 1e-6));
    CHECK_THAT(time(each, fidelity), WithinRel(3.0, 1e-6));
  }
  // A group of two GPUs of each node has the two NICs beside them: ranks on 8 GPUs, 2 x 7/8 S at 2 GB/s.
  nodes.nics = 8;
  for (const Fidelity fidelity : {Fidelity::Steps, Fidelity::Fluid, Fidelity::Folded})
    CHECK_THAT(time([](int rank) { return rank % 8 < 2 ? 0 : -1; }, fidelity), WithinRel(1.75 / 2.0, 1e-6));
  // Where the cluster says that GPUs do not go with NICs, one group has all 8.
  nodes.nearest_nics = false;
  CHECK_THAT(time(only({3}), Fidelity::Fluid), WithinRel(1.5 / 8.0, 1e-6));
}

TEST_CASE("groups that take turns on a queue of their own do not wait for each other's", "[groups][collective]") {
  // Two all-reduces of every group, 0.75 S/B each where the NIC is shared by nobody: 2 nodes of 1 GPU make one group.
  const Cluster cluster = lab_cluster(4, 1, {.nic = 1e9});
  Plan plan = plan_on(cluster);
  const GroupingId pairs = add_grouping(plan, "pair", [](int rank) { return rank / 2; });
  for (const GroupingId grouping : {pairs, kWholeJob}) {
    plan.queues = {{.name = "communication", .grouping = grouping, .slots = 1}};
    plan.ops.clear();
    for (int i = 0; i < 2; ++i)
      plan.ops[static_cast<std::size_t>(add_collective(plan, pairs, Primitive::AllReduce, 1e9))].queue = 0;
    // Each takes 2 x 1/2 S/B = 1 s. One queue for the job serves four of them one after another.
    CHECK_THAT(time_of(plan, cluster, Fidelity::Fluid), WithinRel(grouping == pairs ? 2.0 : 4.0, 1e-6));
  }
}

TEST_CASE("a hierarchical all-reduce is a composition of collectives on groups", "[groups][collective]") {
  const Cluster cluster = lab_cluster(4, 8, {.nic = 5e9, .nic_latency = 2e-5, .port = 50e9, .port_latency = 1e-6});
  constexpr double kBytes = 256e6;
  for (const Fidelity fidelity : {Fidelity::Steps, Fidelity::Fluid}) {
    Plan parts = plan_on(cluster);
    const GroupingId replica = add_grouping(parts, "replica", [](int rank) { return rank % 8; });
    const OpId scattered = add_collective(parts, kEachNode, Primitive::ReduceScatter, kBytes);
    const OpId reduced = add_collective(parts, replica, Primitive::AllReduce, kBytes / 8, {{scattered, 0}});
    add_collective(parts, kEachNode, Primitive::AllGather, kBytes / 8, {{reduced, 0}});
    Plan whole = plan_on(cluster);
    add_collective(whole, kWholeJob, Primitive::AllReduce, kBytes);
    whole.ops.front().collective().algorithm = CollectiveAlgorithm::Hierarchical;
    CHECK_THAT(time_of(parts, cluster, fidelity), WithinRel(time_of(whole, cluster, fidelity), 1e-9));
  }
}

TEST_CASE("groups that look alike from every node are folded, others are not", "[groups][fidelity]") {
  const Cluster cluster = lab_cluster(4, 2);
  const auto fidelity_with = [&](const std::function<int(int)>& group_of) {
    Plan plan = plan_on(cluster);
    add_collective(plan, add_grouping(plan, "some", group_of), Primitive::AllReduce, 1e6);
    return replay(plan, cluster, {}).fidelity;
  };
  CHECK(fidelity_with([](int rank) { return rank % 2; }) == Fidelity::Folded);
  CHECK(fidelity_with([](int rank) { return rank / 4; }) == Fidelity::Folded);
  CHECK(fidelity_with([](int rank) { return rank % 2 == 0 ? 0 : -1; }) == Fidelity::Folded);
  CHECK(fidelity_with([](int rank) { return rank < 2 ? 0 : 1; }) == Fidelity::Fluid);
  CHECK(fidelity_with([](int rank) { return rank < 4 ? 0 : -1; }) == Fidelity::Fluid);
  CHECK(fidelity_with([](int rank) { return rank == 0 || rank == 2 ? 1 : 0; }) == Fidelity::Fluid);
  Plan uneven = plan_on(cluster);
  add_collective(uneven, add_grouping(uneven, "first", [](int rank) { return rank < 2 ? 0 : 1; }), Primitive::AllReduce,
                 1e6);
  CHECK_THROWS_AS(replay(uneven, cluster, {.fidelity = Fidelity::Folded}), PlanError);
}

namespace {

/// Groups by a rule drawn at random: of one node, of the same place on every node, of neighboring nodes, of some ranks.
GroupingId draw_grouping(Plan& plan, int per_node, Random& random) {
  const int ranks = plan.rank_count();
  const int block = per_node * (1 + static_cast<int>(random.below(3)));
  const int share = 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(per_node)));
  switch (random.below(6)) {
    case 0:
      return kEachNode;
    case 1:
      return kWholeJob;
    case 2:
      return add_grouping(plan, "place", [=](int rank) { return rank % per_node; });
    case 3:
      return add_grouping(plan, "block", [=](int rank) { return ranks % block == 0 ? rank / block : 0; });
    case 4:
      return add_grouping(plan, "some", [=](int rank) { return rank % per_node < share ? 0 : -1; });
    default:
      return add_grouping(plan, "strided",
                          [=](int rank) { return ranks % block == 0 ? rank % (ranks / block) : rank % per_node; });
  }
}

/// Nodes with an equal link each, or those of a preset, whose hops inside a node may share links with those that leave
/// it.
Cluster draw_cluster(int per_node, Random& random) {
  constexpr std::array kPresets{"v100-pcie-rdma100g", "p2.8xlarge", "g4dn.12xlarge", "dgx1-p100", "dgx-1"};
  const int nodes = 3 + static_cast<int>(random.below(4));
  Cluster cluster = lab_cluster(nodes, per_node, {.nic = 1e9, .nic_latency = 1e-5, .port = 5e9, .port_latency = 1e-6});
  if (random.below(2) == 0) {
    cluster = find_cluster(kPresets[random.below(kPresets.size())]);
    cluster.groups.front().count = nodes;
  }
  if (random.below(3) == 0) {  // the last node is slower
    NodeGroup slow = cluster.groups.front();
    slow.count = 1;
    slow.compute_slowdown = 1.0 + random.unit();
    --cluster.groups.front().count;
    cluster.groups.push_back(slow);
  }
  return cluster;
}

/// Collectives and compute in a random order, some beside each other.
Plan draw_plan(const Cluster& cluster, int per_node, Random& random) {
  // Chains make ranks differ, so that plans with one are not folded: they are drawn seldom.
  constexpr std::array kPrimitives{Primitive::AllReduce, Primitive::ReduceScatter, Primitive::AllGather,
                                   Primitive::AllToAll,  Primitive::AllReduce,     Primitive::ReduceScatter,
                                   Primitive::AllGather, Primitive::AllToAll,      Primitive::Broadcast,
                                   Primitive::Reduce};
  constexpr std::array kAllReduces{CollectiveAlgorithm::Ring, CollectiveAlgorithm::DoubleBinaryTree,
                                   CollectiveAlgorithm::HalvingDoubling};
  Plan plan = plan_on(cluster);
  constexpr QueueId kStream = 0;
  constexpr QueueId kTurns = 1;
  plan.queues = {{.name = "compute", .grouping = kEachRank, .slots = 1},
                 {.name = "turns", .grouping = kWholeJob, .slots = 1}};
  const std::uint64_t ops = 3 + random.below(6);
  for (std::uint64_t id = 0; id < ops; ++id) {
    std::vector<After> after;
    if (id > 0) after.push_back({static_cast<OpId>(random.below(id)), 0});
    if (random.below(3) == 0) {
      Op op;
      op.queue = kStream;
      op.after = after;
      op.body = Compute{.duration = Seconds{1e-3 * random.unit()}, .parts = {}, .samples = {}};
      plan.ops.push_back(std::move(op));
    } else {
      const GroupingId grouping = draw_grouping(plan, per_node, random);
      const Primitive primitive = kPrimitives[random.below(kPrimitives.size())];
      const OpId added = add_collective(plan, grouping, primitive, 1e6 * (0.1 + random.unit()), after);
      Op& op = plan.ops[static_cast<std::size_t>(added)];
      if (primitive == Primitive::AllReduce) op.collective().algorithm = kAllReduces[random.below(kAllReduces.size())];
      if (random.below(6) == 0) op.queue = kTurns;
    }
  }
  return plan;
}

/// Links that both directions share, links that compute slows down, ports where first bytes wait, token buckets, and
/// host memory that all has to pass.
void draw_links(Cluster& cluster, Random& random) {
  for (auto& [name, link] : cluster.links) {
    link.full_duplex = random.below(3) != 0;
    if (random.below(6) == 0) link.rate_beside_compute = 0.5 + 0.5 * random.unit();
    if (random.below(8) == 0) link.service.queueing_delay = Seconds{1e-4 * random.unit()};
    if (random.below(12) == 0) link.service.burst = Bytes{1 + static_cast<std::int64_t>(random.below(1'000'000))};
  }
  if (random.below(4) != 0) return;
  LinkClass memory;
  memory.name = "memory";
  memory.bandwidth = BytesPerSecond{1e9 * (0.5 + random.unit())};
  cluster.links["memory"] = memory;
  for (NodeGroup& group : cluster.groups) group.fabric.memory_link = "memory";
}

/// Among what crosses nodes is a double tree, and not that alone.
bool has_tree_beside_others(const Plan& plan) {
  const auto crosses = [&](const Op& op) { return detail::crosses_nodes(plan, op.grouping); };
  const auto is_tree = [&](const Op& op) {
    return op.kind() == OpKind::Collective && op.collective().algorithm == CollectiveAlgorithm::DoubleBinaryTree;
  };
  return std::count_if(plan.ops.begin(), plan.ops.end(), crosses) > 1 &&
         std::any_of(plan.ops.begin(), plan.ops.end(), [&](const Op& op) { return is_tree(op) && crosses(op); });
}

}  // namespace

TEST_CASE("random plans with groups fold as they are simulated in full, by both solvers", "[groups][fidelity]") {
  Random random(20);
  int folded = 0;
  int with_trees = 0;
  int shorter = 0;
  constexpr int kPlans = 1500;
  for (int i = 0; i < kPlans; ++i) {
    const Cluster cluster = draw_cluster(1 + static_cast<int>(random.below(4)), random);
    const int per_node = cluster.groups.front().gpus;
    const Plan plan = draw_plan(cluster, per_node, random);
    if (i % 2 == 0) {
      const auto step_by = [&](Solver solver) {
        return replay(plan, cluster, {.fidelity = Fidelity::Fluid, .solver = solver, .max_iterations = 1}).step.value();
      };
      CHECK_THAT(step_by(Solver::Native), WithinRel(step_by(Solver::SimGrid), 1e-6));
    }
    const Prediction chosen = replay(plan, cluster, {.solver = Solver::Native, .max_iterations = 1});
    if (chosen.fidelity != Fidelity::Folded) continue;
    ++folded;
    CAPTURE(i);
    const Prediction full =
        replay(plan, cluster, {.fidelity = Fidelity::Fluid, .solver = Solver::Native, .max_iterations = 1});
    // The busiest node of a double tree stands for all: what others send beside it may take longer than is simulated.
    const bool trees = has_tree_beside_others(plan);
    with_trees += trees ? 1 : 0;
    shorter += chosen.step.value() < (1.0 - 1e-9) * full.step.value() ? 1 : 0;
    REQUIRE(chosen.step.value() <= (1.0 + 1e-9) * full.step.value());
    REQUIRE(chosen.step.value() >= (1.0 - (trees ? 0.02 : 1e-9)) * full.step.value());
  }
  CHECK(folded > kPlans / 4);
  CHECK(with_trees > kPlans / 30);
  CHECK(100 * shorter <= with_trees);
}

TEST_CASE("random plans fold as they are simulated in full, on links of any kind", "[groups][fidelity]") {
  Random random(21);
  std::array<int, 2> folded{};
  int with_trees = 0;
  int shorter = 0;
  constexpr int kPlans = 3000;
  for (int i = 0; i < kPlans; ++i) {
    Cluster cluster = draw_cluster(1 + static_cast<int>(random.below(4)), random);
    draw_links(cluster, random);
    const Plan plan = draw_plan(cluster, cluster.groups.front().gpus, random);
    const double full =
        replay(plan, cluster, {.fidelity = Fidelity::Fluid, .solver = Solver::Native, .max_iterations = 1})
            .step.value();
    for (const Solver solver : {Solver::Native, Solver::SimGrid}) {
      const Prediction chosen = replay(plan, cluster, {.solver = solver, .max_iterations = 1});
      if (chosen.fidelity != Fidelity::Folded) continue;
      ++folded.at(solver == Solver::Native ? 0 : 1);
      CAPTURE(i, solver == Solver::Native);
      const double rounding = solver == Solver::Native ? 1e-8 : 1e-6;
      CHECK(chosen.step.value() <= (1.0 + rounding) * full);
      // Beside a double tree as in the test above.
      const bool trees = has_tree_beside_others(plan);
      with_trees += trees ? 1 : 0;
      shorter += chosen.step.value() < (1.0 - rounding) * full ? 1 : 0;
      CHECK(chosen.step.value() >= (1.0 - (trees ? 0.02 : rounding)) * full);
    }
  }
  CHECK(folded[0] > kPlans / 5);
  CHECK(folded[1] > kPlans / 15);
  CHECK(with_trees > kPlans / 30);
  CHECK(100 * shorter <= with_trees);
}
