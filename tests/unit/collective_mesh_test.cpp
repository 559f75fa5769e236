// Closed forms of every primitive and algorithm against the engine, on every mesh of 2 to 64 ranks: all numbers of
// nodes and of GPUs in a node, groups inside nodes, across nodes (the GPUs of one place) and of all ranks.
#include <bit>
#include <cmath>
#include <functional>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/plan/compile.hpp"
#include "strategies/names.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab.hpp"

using namespace simsync;
using namespace simsync::test;
using Algorithm = CollectiveAlgorithm;
using Primitive = CollectivePrimitive;

namespace {

enum class Groups { InsideNodes, AcrossNodes, All };

struct Mesh {
  int nodes = 1;
  int gpus = 1;
  Groups groups = Groups::All;

  [[nodiscard]] int ranks() const { return nodes * gpus; }
  [[nodiscard]] int members() const {
    return groups == Groups::All ? ranks() : groups == Groups::InsideNodes ? gpus : nodes;
  }
  /// Whether a group has hops inside nodes as well as between them.
  [[nodiscard]] bool mixed() const { return groups == Groups::All && nodes > 1 && gpus > 1; }
};

/// As many NICs as GPUs. A ring that crosses a node once has a channel for each of them.
Cluster cluster_of(const Mesh& mesh) {
  Cluster cluster =
      lab_cluster(mesh.nodes, mesh.gpus, {.nic = 1e9, .nic_latency = 10e-6, .port = 5e9, .port_latency = 2e-6});
  cluster.groups.front().nics = mesh.gpus;
  cluster.collective.channels = mesh.gpus;
  return cluster;
}

Plan plan_of(const Mesh& mesh, const Cluster& cluster, const CollectiveKind& kind, double bytes) {
  Plan plan;
  plan.set_ranks(cluster.workers(cluster.gpu_count()));
  Op op;
  op.grouping = mesh.groups == Groups::All ? kWholeJob : kEachNode;
  if (mesh.groups == Groups::AcrossNodes) {
    std::vector<int> place;
    for (int rank = 0; rank < mesh.ranks(); ++rank) place.push_back(rank % mesh.gpus);
    op.grouping = static_cast<GroupingId>(plan.groupings.size());
    plan.groupings.emplace_back("place", std::move(place));
  }
  op.body = Collective{.primitive = kind.primitive, .algorithm = kind.algorithm, .root = kind.root, .bytes = bytes};
  plan.ops.push_back(std::move(op));
  return plan;
}

struct Times {
  double engine = 0.0;
  double closed = 0.0;
};

Times times_of(const Mesh& mesh, const CollectiveKind& kind, double bytes, Fidelity fidelity) {
  const Cluster cluster = cluster_of(mesh);
  const Plan plan = plan_of(mesh, cluster, kind, bytes);
  const auto members = plan.grouping(plan.ops.front().grouping).ranks(0);
  std::vector<Place> places;
  for (const int rank : members) places.push_back(plan.ranks[static_cast<std::size_t>(rank)]);
  const LinkRates rates = link_rates(cluster, places).front().rates;
  return {replay(plan, cluster, {.fidelity = fidelity, .solver = Solver::Native, .max_iterations = 1}).step.value(),
          collective_time(kind, group_shape(plan, members), bytes, rates).value()};
}

/// Every mesh whose groups have two ranks at least.
void on_every_mesh(const std::function<void(const Mesh&)>& run) {
  constexpr int kMost = 64;
  for (int ranks = 2; ranks <= kMost; ++ranks)
    for (int gpus = 1; gpus <= ranks; ++gpus)
      for (const Groups groups : {Groups::InsideNodes, Groups::AcrossNodes, Groups::All})
        if (const Mesh mesh{ranks / gpus, gpus, groups}; ranks % gpus == 0 && mesh.members() > 1) run(mesh);
}

void same(const Mesh& mesh, const CollectiveKind& kind, double bytes, Fidelity fidelity) {
  const Times times = times_of(mesh, kind, bytes, fidelity);
  constexpr double kClosed = 1e-5;  // messages are whole bytes
  if (std::abs(times.engine - times.closed) <= kClosed * times.closed) return;
  INFO(name_of(kind.primitive) << " by " << name_of(kind.algorithm) << ", " << mesh.nodes << " nodes of " << mesh.gpus
                               << ", groups " << static_cast<int>(mesh.groups) << ", " << bytes << " bytes, fidelity "
                               << static_cast<int>(fidelity));
  CHECK_THAT(times.engine, WithinRel(times.closed, kClosed));
}

/// What the engine finds over the closed form.
void ratio_within(const Mesh& mesh, const CollectiveKind& kind, double bytes, double least, double most) {
  const Times times = times_of(mesh, kind, bytes, Fidelity::Fluid);
  INFO(name_of(kind.algorithm) << ", " << mesh.nodes << " nodes of " << mesh.gpus << ", groups "
                               << static_cast<int>(mesh.groups) << ", " << bytes << " bytes");
  CHECK(times.engine >= least * times.closed);
  CHECK(times.engine <= most * times.closed);
}

}  // namespace

TEST_CASE("closed forms are exact on every mesh of 2 to 64 ranks", "[plan][engine][collective]") {
  // Rings and chains: the longest way of a message through (hop, round). Hierarchical: a ring after another.
  // All-to-all: the busiest port or NIC. All groups of a mesh run at the same time and share nothing: each place has a
  // NIC.
  for (const CollectiveKind& kind : std::vector<CollectiveKind>{{Primitive::AllReduce, Algorithm::Ring},
                                                                {Primitive::AllReduce, Algorithm::Hierarchical},
                                                                {Primitive::ReduceScatter, Algorithm::Ring},
                                                                {Primitive::AllGather, Algorithm::Ring},
                                                                {Primitive::Broadcast, Algorithm::Ring, 1},
                                                                {Primitive::Reduce, Algorithm::Ring, 1}}) {
    for (const double each : {16.0, 40e3, 4e6})
      on_every_mesh([&](const Mesh& mesh) { same(mesh, kind, each * mesh.members(), Fidelity::Fluid); });
  }
  for (const double each : {16.0, 40e3})
    on_every_mesh([&](const Mesh& mesh) {
      same(mesh, {Primitive::AllToAll, Algorithm::Pairwise}, each * mesh.members(), Fidelity::Fluid);
    });
}

TEST_CASE("closed forms are those of every message and of one node of each kind, too", "[plan][engine][collective]") {
  constexpr int kMost = 16;  // ranks: every message of every round costs
  for (const CollectiveKind& kind : std::vector<CollectiveKind>{{Primitive::AllReduce, Algorithm::Hierarchical},
                                                                {Primitive::ReduceScatter, Algorithm::Ring},
                                                                {Primitive::AllGather, Algorithm::Ring},
                                                                {Primitive::Broadcast, Algorithm::Ring, 1},
                                                                {Primitive::Reduce, Algorithm::Ring, 1},
                                                                {Primitive::AllToAll, Algorithm::Pairwise}}) {
    on_every_mesh([&](const Mesh& mesh) {
      if (mesh.ranks() <= kMost) same(mesh, kind, 40e3 * mesh.members(), Fidelity::Steps);
      // A chain over nodes has two ends, and two nodes are no class.
      const bool chain = kind.primitive == Primitive::Broadcast || kind.primitive == Primitive::Reduce;
      const bool folds = mesh.nodes > 2 && (!chain || mesh.groups == Groups::InsideNodes);
      if (folds) same(mesh, kind, 40e3 * mesh.members(), Fidelity::Folded);
    });
  }
}

TEST_CASE("halving-doubling over powers of two is exact, over other numbers nearly", "[plan][engine][collective]") {
  const CollectiveKind kind{Primitive::AllReduce, Algorithm::HalvingDoubling};
  for (const double each : {16.0, 40e3, 4e6}) {
    on_every_mesh([&](const Mesh& mesh) {
      const bool even = std::has_single_bit(static_cast<unsigned>(mesh.members())) &&
                        (!mesh.mixed() || std::has_single_bit(static_cast<unsigned>(mesh.gpus)));
      if (even) return same(mesh, kind, each * mesh.members(), Fidelity::Fluid);
      // Blocks of several sizes go on at their own pace, of which the closed form knows the slowest of each step.
      // Over nodes of several GPUs such a block may be spread unevenly: sim/README.md has this figure.
      ratio_within(mesh, kind, each * mesh.members(), 0.985, mesh.mixed() ? 1.0 / 0.7 : 1.001);
    });
  }
}

TEST_CASE("messages that flow through trees and there and back are exact alone, nearly so in a row",
          "[plan][engine][collective]") {
  // sim/README.md has these figures. A rank between two others passes messages up and down: how its ports share them is
  // PipelineFill's work, of which the closed form has the steady state.
  const CollectiveKind chain{Primitive::AllReduce, Algorithm::BroadcastReduce};
  const CollectiveKind tree{Primitive::AllReduce, Algorithm::DoubleBinaryTree};
  on_every_mesh([&](const Mesh& mesh) {
    same(mesh, chain, 16.0 * mesh.members(), Fidelity::Fluid);
    ratio_within(mesh, tree, 16.0 * mesh.members(), 0.999, 1.01);
    for (const double each : {40e3, 4e6}) {
      ratio_within(mesh, chain, each * mesh.members(), 0.95, 1.02);
      ratio_within(mesh, tree, each * mesh.members(), 0.83, 1.22);
    }
  });
}

TEST_CASE("send/receive takes the NIC of its GPU, or the links inside a node", "[plan][engine][collective]") {
  // 1 GB at 1 GB/s behind 10 us; pieces follow each other, so the latency counts once. In a node 5 GB/s and 2 us.
  for (const int root : {0, 1}) {
    const CollectiveKind kind{Primitive::SendReceive, Algorithm::Pairwise, root};
    for (const Fidelity fidelity : {Fidelity::Fluid, Fidelity::Steps}) {
      same({2, 4, Groups::AcrossNodes}, kind, 1e9, fidelity);
      same({4, 2, Groups::InsideNodes}, kind, 1e9, fidelity);
    }
    CHECK_THAT(times_of({2, 4, Groups::AcrossNodes}, kind, 1e9, Fidelity::Fluid).engine, WithinRel(1.00001, 1e-9));
    CHECK_THAT(times_of({4, 2, Groups::InsideNodes}, kind, 1e9, Fidelity::Fluid).engine, WithinRel(0.200002, 1e-9));
  }
}
