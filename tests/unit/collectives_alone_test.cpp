// Collectives that have the network for themselves take as long as if their hops were simulated.
#include <array>

#include "base/random.hpp"
#include "sim/engine/alike_traffic.hpp"
#include "sim/engine/engine.hpp"
#include "sim/plan/collective_alone.hpp"
#include "sim/problem/problem.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab.hpp"

using namespace simsync;
using namespace simsync::test;
using Catch::Matchers::WithinRel;
using Primitive = CollectivePrimitive;

namespace {

constexpr QueueId kCompute = 0;
constexpr QueueId kStream = 1;

/// Two kinds of nodes, which may differ in GPUs, NIC and speed.
Cluster draw_cluster(Random& random) {
  const double nic = 1e9 * (0.1 + random.unit());
  const double port = 1e9 * (0.5 + random.unit());
  Cluster cluster = lab_cluster(1 + static_cast<int>(random.below(4)), 1 + static_cast<int>(random.below(4)),
                                {.nic = nic, .nic_latency = 1e-5, .port = port, .port_latency = 1e-6});
  cluster.collective.interference = random.below(2) == 0 ? 0.0 : 0.2;
  cluster.links["slow"] = cluster.links.at("nic");
  cluster.links["slow"].name = "slow";
  cluster.links["slow"].bandwidth = 0.5 * cluster.links.at("nic").bandwidth;
  NodeGroup others = cluster.groups.front();
  others.name = "others";
  others.count = 1 + static_cast<int>(random.below(3));
  if (random.below(2) == 0) others.nic_link = "slow";
  if (random.below(2) == 0) others.compute_slowdown = 1.0 + random.unit();
  if (random.below(3) == 0) others.gpus = 1 + static_cast<int>(random.below(4));
  cluster.groups.push_back(others);
  return cluster;
}

Plan draw_plan(const Cluster& cluster, Random& random) {
  constexpr std::array kPrimitives{Primitive::AllReduce,     Primitive::AllReduce, Primitive::AllReduce,
                                   Primitive::ReduceScatter, Primitive::AllGather, Primitive::AllToAll,
                                   Primitive::Broadcast,     Primitive::Reduce};
  constexpr std::array kAllReduces{CollectiveAlgorithm::Ring, CollectiveAlgorithm::DoubleBinaryTree,
                                   CollectiveAlgorithm::HalvingDoubling};
  Plan plan;
  plan.set_ranks(cluster.workers(cluster.gpu_count()));
  plan.queues = {{.name = "compute", .grouping = kEachRank, .slots = 1},
                 {.name = "stream", .grouping = kWholeJob, .slots = 1},
                 {.name = "host", .grouping = kEachNode, .slots = 1}};
  const std::uint64_t ops = 3 + random.below(8);
  for (std::uint64_t id = 0; id < ops; ++id) {
    Op op;
    if (id > 0) op.after.push_back({static_cast<OpId>(random.below(id)), 0});
    if (random.below(4) == 0) op.after.push_back({static_cast<OpId>(random.below(ops)), 1});  // of the step before
    if (random.below(2) == 0) {
      op.queue = kCompute;
      op.body = Compute{.duration = Seconds{1e-3 * random.unit()}, .parts = {}, .samples = {}};
    } else {
      op.grouping = kWholeJob;
      op.queue = kStream;
      const Primitive primitive = kPrimitives[random.below(kPrimitives.size())];
      const auto algorithm =
          primitive == Primitive::AllReduce ? kAllReduces[random.below(kAllReduces.size())] : CollectiveAlgorithm::Ring;
      op.body = Collective{.primitive = primitive,
                           .algorithm = algorithm,
                           .protocol = {},
                           .bytes = 1e6 * (0.1 + random.unit()),
                           .setup = Seconds{1e-5},
                           .ratio = 0.5 + random.unit()};
    }
    plan.ops.push_back(std::move(op));
  }
  return plan;
}

/// Two collectives over all ranks, one after another.
Plan two_collectives(const Cluster& cluster) {
  Plan plan;
  plan.set_ranks(cluster.workers(cluster.gpu_count()));
  plan.queues = {{.name = "compute", .grouping = kEachRank, .slots = 1},
                 {.name = "stream", .grouping = kWholeJob, .slots = 1},
                 {.name = "other", .grouping = kWholeJob, .slots = 1}};
  for (int i = 0; i < 2; ++i) {
    Op op;
    op.grouping = kWholeJob;
    op.queue = kStream;
    op.body = Collective{.primitive = Primitive::AllReduce,
                         .algorithm = CollectiveAlgorithm::DoubleBinaryTree,
                         .protocol = {},
                         .bytes = 1e6,
                         .setup = {}};
    plan.ops.push_back(op);
  }
  return plan;
}

}  // namespace

TEST_CASE("collectives over all ranks, one after another, take what their hops take", "[engine][collective]") {
  Random random(25);
  int folded = 0;
  int with_collectives = 0;
  for (int i = 0; i < 600; ++i) {
    const Cluster cluster = draw_cluster(random);
    const Plan plan = draw_plan(cluster, random);
    check(plan);
    const bool alone = detail::collectives_are_alone(plan, cluster);
    with_collectives += alone ? 1 : 0;
    CAPTURE(i);
    const ReplayOptions native{.solver = Solver::Native};
    const Prediction known = replay(plan, cluster, native);
    ReplayOptions simulated = native;
    simulated.fidelity = Fidelity::Fluid;
    const Prediction by_hop = replay(plan, cluster, simulated);
    CHECK_THAT(known.step.value(), WithinRel(by_hop.step.value(), 1e-9));
    CHECK(known.steps.size() == by_hop.steps.size());
    folded += known.simulated_ranks < by_hop.simulated_ranks ? 1 : 0;
    if (i % 4 != 0) continue;
    simulated.solver = Solver::SimGrid;
    CHECK_THAT(known.step.value(), WithinRel(replay(plan, cluster, simulated).step.value(), 1e-6));
  }
  CHECK(with_collectives > 500);
  CHECK(folded > 200);
}

TEST_CASE("a collective beside other traffic, or on links that change, is not alone", "[engine][collective]") {
  const Cluster cluster = lab_cluster(3, 2);
  const Plan plan = two_collectives(cluster);
  CHECK(detail::collectives_are_alone(plan, cluster));

  Plan beside = plan;
  beside.ops.back().queue = 2;
  CHECK_FALSE(detail::collectives_are_alone(beside, cluster));

  Plan at_once = plan;
  at_once.queues[1].slots = 2;
  CHECK_FALSE(detail::collectives_are_alone(at_once, cluster));

  Plan in_groups = plan;
  in_groups.ops.back().grouping = kEachNode;
  CHECK_FALSE(detail::collectives_are_alone(in_groups, cluster));

  Plan in_any_order = plan;
  in_any_order.ops.front().random_order = true;
  CHECK(replay(in_any_order, cluster, {.solver = Solver::Native, .max_iterations = 2}).simulated_ranks > 1);

  Plan copies = plan;
  copies.ops.back().grouping = kEachRank;
  copies.ops.back().body = Transfer{.from = {End::Kind::Device, {}}, .to = {End::Kind::Host, {}}, .bytes = 1e6};
  CHECK_FALSE(detail::collectives_are_alone(copies, cluster));

  Cluster with_tokens = cluster;
  with_tokens.links.at("nic").service.burst = Bytes{1000};
  CHECK_FALSE(detail::collectives_are_alone(plan, with_tokens));

  Cluster slowed = cluster;
  slowed.links.at("pcie").rate_beside_compute = 0.8;
  CHECK_FALSE(detail::collectives_are_alone(plan, slowed));
}

TEST_CASE("one rank of each speed stands for all where ranks meet in collectives alone", "[engine][collective]") {
  const auto predicted = [](const char* strategy, int workers, const char* fidelity, const char* straggler) {
    const Problem problem = prepare(
        {.model = "resnet50",
         .cluster = "g4dn.12xlarge",
         .strategy = strategy,
         .workers = workers,
         .batch = {},
         .settings = {{"memory", "ignore"}, {"solver", "native"}, {"fidelity", fidelity}, {"straggler", straggler}}});
    return replay(problem.plan, problem.cluster, problem.options);
  };
  for (const char* strategy : {"horovod", "ddp", "fsdp"}) {
    for (const int workers : {4, 6, 22}) {  // one node, two, and six of which the last has two GPUs
      for (const char* straggler : {"1", "1.3"}) {
        CAPTURE(strategy, workers, straggler);
        const bool is_slow = workers > 4 && std::string(straggler) != "1";
        const Prediction folded = predicted(strategy, workers, "folded", straggler);
        CHECK(folded.simulated_ranks == (is_slow ? 2 : 1));
        CHECK(folded.flows == 0);
        CHECK(folded.collectives_alone > 0);
        CHECK_THAT(folded.step.value(), WithinRel(predicted(strategy, workers, "fluid", straggler).step.value(), 1e-9));
      }
    }
  }
}

TEST_CASE("what collectives took is kept for the next replay of the same ranks only", "[engine][collective]") {
  const Cluster cluster = lab_cluster(3, 2);
  const Cluster half = lab_cluster(2, 2);
  const auto step = [](const Cluster& on, std::shared_ptr<CollectiveAlone> kept) {
    return replay(two_collectives(on), on, {.solver = Solver::Native, .alone = std::move(kept)}).step.value();
  };
  const auto kept = std::make_shared<CollectiveAlone>(cluster, two_collectives(cluster).ranks);
  const double first = step(cluster, kept);
  CHECK(step(cluster, kept) == first);
  CHECK(step(cluster, nullptr) == first);
  CHECK(step(half, kept) == step(half, nullptr));
  CHECK(step(half, kept) < first);
}
