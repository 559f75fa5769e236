// Ranks of a mesh stand for each other along its axes: meshes and layouts drawn at random, against `fluid`.
#include "sim/engine/rank_orbits.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"
#include "platforms/reader.hpp"
#include "sim/engine/engine.hpp"
#include "sim/problem/problem.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/gpt2.hpp"
#include "tests/support/lab.hpp"

using namespace simsync;
using namespace simsync::test;
using Catch::Matchers::WithinRel;
using Primitive = CollectivePrimitive;

namespace {

Prediction replayed(const Plan& plan, const Cluster& cluster, Fidelity fidelity, int iterations) {
  return replay(plan, cluster, {.fidelity = fidelity, .solver = Solver::Native, .max_iterations = iterations});
}

template <std::size_t N>
int one_of(const std::array<int, N>& numbers, Random& random) {
  return numbers.at(random.below(N));
}

/// Tensor-parallel ranks side by side, then replicas, then stages.
struct Mesh {
  int tensor = 1;
  int replicas = 1;
  int stages = 1;
  [[nodiscard]] int ranks() const { return tensor * replicas * stages; }
};

/// A plan of a mesh without ops; groups along each of its axes, of every stage or of all.
class MeshPlan {
public:
  MeshPlan(const Cluster& cluster, const Mesh& mesh) : mesh_(mesh) {
    plan.set_ranks(cluster.workers(mesh.ranks()));
    for (int stage = 0; stage < mesh.stages; ++stage) {
      const auto here = [&](const std::function<int(int, int)>& group_of) {
        add([&](int tensor, int replica, int at) { return at == stage ? group_of(tensor, replica) : -1; });
      };
      each.push_back(next());
      here([&](int tensor, int replica) { return replica * mesh.tensor + tensor; });
      here([](int /*tensor*/, int replica) { return replica; });
      here([](int tensor, int /*replica*/) { return tensor; });
      here([](int /*tensor*/, int /*replica*/) { return 0; });
      if (mesh.replicas % 2 == 0) here([&](int tensor, int replica) { return replica / 2 * mesh.tensor + tensor; });
      if (stage + 1 < mesh.stages) {
        pairs.push_back(next());
        add([&](int tensor, int replica, int at) {
          return at == stage || at == stage + 1 ? replica * mesh.tensor + tensor : -1;
        });
      }
    }
    plan.queues = {{.name = "compute", .grouping = kEachRank, .slots = 1},
                   {.name = "copies", .grouping = kEachRank, .slots = 1, .ordering = Ordering::Priority},
                   {.name = "host", .grouping = kEachNode, .slots = 1}};
  }

  Plan plan;
  std::vector<GroupingId> each;   ///< every rank of a stage by itself
  std::vector<GroupingId> pairs;  ///< of ranks of a stage and of the next

private:
  [[nodiscard]] GroupingId next() const { return static_cast<GroupingId>(plan.groupings.size()); }
  void add(const std::function<int(int, int, int)>& group_of) {
    std::vector<int> groups;
    for (int rank = 0; rank < mesh_.ranks(); ++rank)
      groups.push_back(
          group_of(rank % mesh_.tensor, rank / mesh_.tensor % mesh_.replicas, rank / mesh_.tensor / mesh_.replicas));
    plan.groupings.emplace_back("mesh " + std::to_string(next()), std::move(groups));
  }

  Mesh mesh_;
};

/// From 0 to 1; of `steps` values, so that much happens at one instant, or of any where that is 0.
double draw_amount(Random& random, int steps) {
  return steps == 0 ? random.unit()
                    : (1.0 + static_cast<double>(random.below(static_cast<std::uint64_t>(steps)))) / steps;
}

Op draw_collective(const MeshPlan& mesh, Random& random, int steps) {
  constexpr std::array kPrimitives{Primitive::AllReduce, Primitive::ReduceScatter, Primitive::AllGather,
                                   Primitive::AllToAll, Primitive::SendReceive};
  constexpr std::array kAllReduces{CollectiveAlgorithm::Ring, CollectiveAlgorithm::Ring, CollectiveAlgorithm::Ring,
                                   CollectiveAlgorithm::DoubleBinaryTree, CollectiveAlgorithm::HalvingDoubling};
  Collective all{.primitive = kPrimitives.at(random.below(kPrimitives.size())), .protocol = {}, .setup = {}};
  all.bytes = 1e6 * (0.1 + draw_amount(random, steps));
  Op op;
  const auto first = static_cast<std::size_t>(kWholeJob) + 1;
  do {
    op.grouping = static_cast<GroupingId>(first + random.below(mesh.plan.groupings.size() - first));
  } while (std::find(mesh.each.begin(), mesh.each.end(), op.grouping) != mesh.each.end());
  const bool pair = std::find(mesh.pairs.begin(), mesh.pairs.end(), op.grouping) != mesh.pairs.end();
  if (pair) all.primitive = Primitive::SendReceive;
  if (!pair && all.primitive == Primitive::SendReceive) all.primitive = Primitive::AllReduce;
  all.algorithm = all.primitive == Primitive::AllReduce  ? kAllReduces.at(random.below(kAllReduces.size()))
                  : all.primitive == Primitive::AllToAll ? CollectiveAlgorithm::Pairwise
                                                         : CollectiveAlgorithm::Ring;
  op.body = all;
  return op;
}

/// Compute of stages and collectives along axes, some beside each other.
Plan draw_plan(const Cluster& cluster, const Mesh& shape, Random& random, int steps = 0) {
  MeshPlan mesh(cluster, shape);
  const std::uint64_t ops = 4 + random.below(12);
  for (std::uint64_t id = 0; id < ops; ++id) {
    Op op;
    if (random.below(6) == 0) {  // each device to its host, or back
      const End device{.kind = End::Kind::Device, .place = {}};
      const End host{.kind = End::Kind::Host, .place = {}};
      const bool up = random.below(2) == 0;
      op.body = Transfer{.from = up ? device : host,
                         .to = up ? host : device,
                         .bytes = 1e6 * draw_amount(random, steps),
                         .setup = {},
                         .packing = {}};
      if (random.below(2) == 0) op.queue = 1 + static_cast<int>(random.below(2));
      op.priority = static_cast<int>(random.below(3));
    } else if (random.below(2) == 0) {
      op.grouping = mesh.each.at(random.below(mesh.each.size()));
      op.queue = 0;
      op.body = Compute{.duration = Seconds{1e-3 * draw_amount(random, steps)}, .parts = {}, .samples = {}};
    } else {
      op = draw_collective(mesh, random, steps);
    }
    for (std::uint64_t before = 0; before < id; ++before)
      if (random.below(id) < 2) op.after.push_back({static_cast<OpId>(before), 0});
    mesh.plan.ops.push_back(std::move(op));
  }
  return mesh.plan;
}

Cluster draw_cluster(int nodes, Random& random) {
  constexpr std::array kPresets{"dgx-a100", "dgx-h100", "g4dn.12xlarge", "dgx-1", "v100-pcie-rdma100g", "p2.8xlarge"};
  if (random.below(3) == 0)
    return lab_cluster(nodes, one_of(std::array{1, 2, 4, 8}, random),
                       {.nic = 1e9, .nic_latency = 1e-5, .port = 5e9, .port_latency = 1e-6});
  Cluster cluster = find_cluster(kPresets.at(random.below(kPresets.size())));
  cluster.groups.front().count = nodes;
  return cluster;
}

}  // namespace

TEST_CASE("random meshes of ranks fold as they are simulated in full", "[groups][fidelity]") {
  Random random(26);
  constexpr int kPlans = 2000;
  int folded = 0;
  int parts_of_nodes = 0;
  double simulated = 0.0;
  double ranks = 0.0;
  for (int i = 0; i < kPlans; ++i) {
    const Mesh mesh{.tensor = one_of(std::array{1, 2, 3, 4, 8}, random),
                    .replicas = one_of(std::array{1, 2, 3, 4}, random),
                    .stages = one_of(std::array{1, 2, 3, 4}, random)};
    const Cluster cluster = draw_cluster(mesh.ranks(), random);
    const Plan plan = draw_plan(cluster, mesh, random);
    check(plan);
    const Prediction chosen = replayed(plan, cluster, Fidelity::Auto, 3);
    if (chosen.fidelity != Fidelity::Folded) continue;
    ++folded;
    if (chosen.simulated_ranks % cluster.groups.front().gpus != 0) ++parts_of_nodes;
    simulated += chosen.simulated_ranks;
    ranks += mesh.ranks();
    CAPTURE(i, cluster.name, mesh.tensor, mesh.replicas, mesh.stages);
    const Prediction full = replayed(plan, cluster, Fidelity::Fluid, 3);
    REQUIRE_THAT(chosen.step.value(), WithinRel(full.step.value(), 1e-9));
  }
  CAPTURE(folded, parts_of_nodes, simulated, ranks);
  CHECK(folded > kPlans / 4);
  CHECK(parts_of_nodes > kPlans / 10);
  CHECK(simulated < ranks / 2.0);
}

TEST_CASE("of meshes on which much begins at one instant nearly all fold as they are simulated in full",
          "[groups][fidelity]") {
  // Queues serve those that begin to wait at one instant in the order in which they came, which a fold may change.
  Random random(28);
  int folded = 0;
  int differ = 0;
  for (int i = 0; i < 1000; ++i) {
    const Mesh mesh{.tensor = one_of(std::array{2, 4}, random),
                    .replicas = one_of(std::array{1, 2, 4}, random),
                    .stages = one_of(std::array{1, 2}, random)};
    const Cluster cluster = draw_cluster(mesh.ranks(), random);
    const Plan plan = draw_plan(cluster, mesh, random, 2);
    const Prediction chosen = replayed(plan, cluster, Fidelity::Auto, 3);
    if (chosen.fidelity != Fidelity::Folded) continue;
    ++folded;
    const Prediction full = replayed(plan, cluster, Fidelity::Fluid, 3);
    if (!WithinRel(full.step.value(), 1e-9).match(chosen.step.value())) ++differ;
  }
  CAPTURE(folded, differ);
  CHECK(folded > 250);
  CHECK(differ == 0);
}

TEST_CASE("random layouts of GPT-2 fold as they are simulated in full", "[groups][fidelity][parallel]") {
  Random random(27);
  int folded = 0;
  int compared = 0;
  constexpr int kLayouts = 60;
  for (int i = 0; i < kLayouts; ++i) {
    const int tensor = one_of(std::array{1, 2, 4}, random);
    const int pipeline = one_of(std::array{1, 2, 4}, random);
    const int workers = tensor * pipeline * one_of(std::array{1, 2, 3, 4}, random);
    const bool sharded = random.below(2) == 0;
    std::vector<std::pair<std::string, std::string>> settings{{"strategy.tensor", std::to_string(tensor)},
                                                              {"strategy.pipeline", std::to_string(pipeline)},
                                                              {"strategy.micro_steps", "4"},
                                                              {"memory", "ignore"}};
    if (tensor > 1 && random.below(2) == 0) settings.emplace_back("strategy.sequence", "true");
    if (sharded) settings.emplace_back("strategy.stage", std::to_string(1 + random.below(3)));
    CAPTURE(i, workers, tensor, pipeline, sharded);
    const Problem problem = gpt2(workers, settings, sharded ? "fsdp" : "ddp");
    const Prediction chosen = replayed(problem.plan, problem.cluster, Fidelity::Auto, 3);
    ++compared;
    if (chosen.fidelity != Fidelity::Folded) continue;
    ++folded;
    CAPTURE(chosen.simulated_ranks);
    const Prediction full = replayed(problem.plan, problem.cluster, Fidelity::Fluid, 3);
    CHECK_THAT(chosen.step.value(), WithinRel(full.step.value(), 1e-9));
  }
  CAPTURE(folded, compared);
  CHECK(folded > compared / 2);
}

TEST_CASE("of a stage a rank for each replica of a node is simulated", "[groups][fidelity][parallel]") {
  const auto simulated = [](int workers, const std::string& stages) {
    const Problem problem = gpt2(workers,
                                 {{"strategy.tensor", "4"},
                                  {"strategy.pipeline", stages},
                                  {"strategy.micro_steps", "4"},
                                  {"strategy.sequence", "true"},
                                  {"strategy.stage", "1"}},
                                 "fsdp");
    const Prediction chosen = replayed(problem.plan, problem.cluster, Fidelity::Auto, 3);
    CHECK(chosen.fidelity == Fidelity::Folded);
    return chosen.simulated_ranks;
  };
  // Two stages of 16 ranks on two nodes each: 4 tensor-parallel ranks, and rings of four replicas, two on a node, of
  // whose hops every other one leaves it.
  CHECK(simulated(32, "2") == 4);
  // Eight stages of one node each: both replicas do the same.
  CHECK(simulated(64, "8") == 8);
}

TEST_CASE("ranks that a plan or the network tells apart do not stand for each other", "[groups][fidelity]") {
  const Cluster alike = lab_cluster(2, 4, {.nic = 1e9, .nic_latency = 1e-5, .port = 5e9, .port_latency = 1e-6});
  const auto simulated = [](const Plan& plan, const Cluster& cluster) {
    return replayed(plan, cluster, Fidelity::Auto, 1).simulated_ranks;
  };
  MeshPlan mesh(alike, {.tensor = 4, .replicas = 2});
  Op ring;
  ring.grouping = static_cast<GroupingId>(kWholeJob) + 2;  // tensor-parallel ranks
  ring.body = Collective{.protocol = {}, .bytes = 1e6, .setup = {}};
  mesh.plan.ops.push_back(ring);
  CHECK(simulated(mesh.plan, alike) == 1);
  SECTION("by their places in a tree") {
    mesh.plan.ops.front().collective().algorithm = CollectiveAlgorithm::DoubleBinaryTree;
    CHECK(simulated(mesh.plan, alike) == 4);  // those of one node
  }
  SECTION("by speed") {
    Cluster slow = alike;
    slow.groups.push_back(slow.groups.front());
    slow.groups.front().count = slow.groups.back().count = 1;
    slow.groups.back().compute_slowdown = 1.5;
    CHECK(simulated(mesh.plan, slow) == 2);  // one of each node
  }
  SECTION("by a queue in which they take turns") {
    mesh.plan.queues.push_back({.name = "turns", .grouping = kWholeJob, .slots = 1});
    mesh.plan.ops.front().queue = static_cast<int>(mesh.plan.queues.size()) - 1;
    CHECK(simulated(mesh.plan, alike) == 2);  // both groups take turns, the ranks of each do the same
  }
  SECTION("by what they draw") {
    mesh.plan.draws.step_variation = 0.1;
    CHECK(simulated(mesh.plan, alike) == 8);
  }
  SECTION("by what hosts send ahead") {
    Cluster ahead = alike;
    ahead.groups.front().cpu.send_ahead = Seconds{0.1};
    CHECK(simulated(mesh.plan, ahead) == 8);
  }
}

TEST_CASE("ranks whose link keeps a queue do not stand for each other", "[groups][fidelity]") {
  // 10 MB pass at once, so the first copy takes no time of the link, and the second one does.
  Cluster cluster = lab_cluster(1, 2, {.nic = 1e9, .nic_latency = 1e-5, .port = 5e9, .port_latency = 1e-6});
  cluster.links["switch"] = cluster.links.at("pcie");
  cluster.links["switch"].service.burst = Bytes{10'000'000};
  NodeFabric& fabric = cluster.groups.front().fabric;
  fabric.gpus_per_switch = 2;
  fabric.switch_link = "switch";
  Plan plan;
  plan.set_ranks(cluster.workers(2));
  Op copy;
  copy.grouping = kEachRank;
  copy.body = Transfer{.from = {.kind = End::Kind::Device, .place = {}},
                       .to = {.kind = End::Kind::Host, .place = {}},
                       .bytes = 1e7,
                       .setup = {},
                       .packing = {}};
  plan.ops.push_back(copy);
  const Prediction chosen = replayed(plan, cluster, Fidelity::Auto, 1);
  CHECK(chosen.simulated_ranks == 2);
  cluster.links["switch"].service = {};
  CHECK(replayed(plan, cluster, Fidelity::Auto, 1).simulated_ranks == 1);
}

TEST_CASE("a flow crosses a shared link as often as those that it stands for", "[groups][fidelity]") {
  using Links = std::vector<LinkId>;
  CHECK(detail::links_of_one({{3, 9}, {4, 9}, {5, 9}}) == Links{3, 9, 9, 9});
  // Two uplinks, each of two ranks, and the half-duplex link that all cross there and back.
  CHECK(detail::links_of_one({{1, 7, 9, 9}, {2, 7, 9, 9}, {3, 8, 9, 9}, {4, 8, 9, 9}}) ==
        Links{1, 7, 7, 9, 9, 9, 9, 9, 9, 9, 9});
}
