// Closed forms of every primitive and algorithm against the engine, on every mesh of 2 to 64 ranks: all numbers of
// nodes and of GPUs in a node, groups inside nodes, across nodes (the GPUs of one place) and of all ranks.
#include <functional>
#include <string>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/plan/compile.hpp"
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

}  // namespace

TEST_CASE("PROBE", "[probe]") {
  struct K { std::string name; CollectiveKind kind; };
  const std::vector<K> kinds{{"ar-ring", {Primitive::AllReduce, Algorithm::Ring}},
   {"rs", {Primitive::ReduceScatter, Algorithm::Ring}},
   {"ag", {Primitive::AllGather, Algorithm::Ring}},
   {"ar-hd", {Primitive::AllReduce, Algorithm::HalvingDoubling}},
   {"ar-hier", {Primitive::AllReduce, Algorithm::Hierarchical}},
   {"ar-tree", {Primitive::AllReduce, Algorithm::DoubleBinaryTree}},
   {"ar-br", {Primitive::AllReduce, Algorithm::BroadcastReduce}},
   {"a2a", {Primitive::AllToAll, Algorithm::Pairwise}}};
  for (const K& k : kinds)
    for (const double each : {16.0, 40e3, 4e6}) {
      std::map<std::string, std::pair<double,double>> range; std::map<std::string,std::string> where;
      on_every_mesh([&](const Mesh& m) {
        if (k.name == "a2a" && m.ranks() > 32) return;
        const Times t = times_of(m, k.kind, each * m.members(), Fidelity::Fluid);
        const std::string g = m.mixed() ? "mixed" : m.groups == Groups::AcrossNodes ? "across" : m.groups == Groups::InsideNodes ? "inside" : "all1";
        const double r = t.engine / t.closed;
        auto& x = range.try_emplace(g, 1e9, 0.0).first->second;
        if (r < x.first) { x.first = r; where[g+"-"] = std::to_string(m.nodes)+"x"+std::to_string(m.gpus); }
        if (r > x.second) { x.second = r; where[g+"+"] = std::to_string(m.nodes)+"x"+std::to_string(m.gpus); }
      });
      for (auto& [g, x] : range) printf("%s %s each %g: %.7f (%s) .. %.7f (%s)\n", k.name.c_str(), g.c_str(), each, x.first, where[g+"-"].c_str(), x.second, where[g+"+"].c_str());
      fflush(stdout);
    }
}
