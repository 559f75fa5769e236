// The closed forms of collective_time against the engine, for a collective that has the network to itself.
#include "sim/plan/collectives.hpp"
#include "sim/plan/compile.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab_run.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

using Algorithm = CollectiveAlgorithm;

constexpr double kClosed = 1e-5;  ///< messages are whole bytes
constexpr LabLinks kAlike{.nic = 1e9, .nic_latency = 10e-6, .port = 1e9, .port_latency = 10e-6};
constexpr LabLinks kFastInside{.nic = 1e9, .nic_latency = 10e-6, .port = 20e9, .port_latency = 2e-6};

struct Shape {
  int nodes = 1;
  int gpus = 1;
};

/// Closed form and engine for one payload.
void same(const LabLinks& wires, Shape shape, Algorithm algorithm, double bytes, Fidelity fidelity) {
  const Cluster cluster = lab_cluster(shape.nodes, shape.gpus, wires);
  const int ranks = shape.nodes * shape.gpus;
  GroupShape group;
  for (int node = 0; node <= shape.nodes; ++node) group.node_begin.push_back(node * shape.gpus);
  const double closed = collective_time(CollectivePrimitive::AllReduce, algorithm, group, bytes,
                                        link_rates(cluster, cluster.workers(ranks)))
                            .value();
  INFO(shape.nodes << " nodes of " << shape.gpus << ", " << bytes << " bytes, algorithm "
                   << static_cast<int>(algorithm));
  CHECK_THAT(all_reduce_time(cluster, ranks, bytes, algorithm, fidelity), WithinRel(closed, kClosed));
}

/// Small, medium and large payloads that all ranks divide.
void same(const LabLinks& wires, Shape shape, Algorithm algorithm, Fidelity fidelity = Fidelity::Fluid) {
  for (const double unit : {16.0, 40e3, 4e6}) same(wires, shape, algorithm, unit * shape.nodes * shape.gpus, fidelity);
}

}  // namespace

TEST_CASE("closed form of a ring: one kind of hop", "[plan][engine][collective]") {
  for (const int n : {2, 3, 8, 33}) {
    same(kAlike, {n, 1}, Algorithm::Ring);
    same(kFastInside, {1, n}, Algorithm::Ring);
  }
  same(kAlike, {4, 8}, Algorithm::Ring, Fidelity::Steps);
}

TEST_CASE("closed form of halving-doubling: exchanges inside and between nodes", "[plan][engine][collective]") {
  for (const int n : {2, 3, 6, 8, 48}) same(kAlike, {n, 1}, Algorithm::HalvingDoubling);
  for (const int nodes : {1, 2, 4}) same(kFastInside, {nodes, 8}, Algorithm::HalvingDoubling);
  same(kFastInside, {4, 8}, Algorithm::HalvingDoubling, Fidelity::Steps);
}

TEST_CASE("closed form of hierarchical all-reduce: inside, between, inside", "[plan][engine][collective]") {
  for (const Shape shape : {Shape{1, 8}, {2, 8}, {5, 3}, {8, 1}}) same(kFastInside, shape, Algorithm::Hierarchical);
  same(kFastInside, {3, 4}, Algorithm::Hierarchical, Fidelity::Steps);
}

TEST_CASE("closed form of a chain: the first message, then the pace of the busiest link",
          "[plan][engine][collective]") {
  for (const Shape shape : {Shape{2, 1}, {3, 1}, {9, 1}, {1, 2}, {1, 8}})
    same(kAlike, shape, Algorithm::BroadcastReduce);
  for (const Shape shape : {Shape{2, 4}, {4, 2}, {3, 8}}) same(kFastInside, shape, Algorithm::BroadcastReduce);
}

TEST_CASE("closed form of a double binary tree on four nodes and more", "[plan][engine][collective]") {
  for (const int nodes : {4, 7, 8, 16}) same(kAlike, {nodes, 1}, Algorithm::DoubleBinaryTree);
}

TEST_CASE("a node of one rank does not hide how fast the others are inside", "[plan][collective]") {
  // Nodes with 1 and 3 ranks: the neighbors are on the second.
  const Cluster cluster = lab_cluster(2, 3, kFastInside);
  const LinkRates rates = link_rates(cluster, {{0, 0}, {1, 0}, {1, 1}, {1, 2}});
  CHECK_THAT(rates.rate_intra.value(), WithinRel(20e9, 1e-12));
  CHECK_THAT(rates.alpha_intra.value(), WithinRel(2e-6, 1e-12));
  CHECK_THAT(rates.rate_inter.value(), WithinRel(1e9, 1e-12));
}

TEST_CASE("hierarchical over unequal nodes is a ring, by name", "[plan][collective]") {
  const GroupShape unequal{.node_begin = {0, 2, 5}};
  const GroupShape equal{.node_begin = {0, 2, 4}};
  CHECK(choose_algorithm(Algorithm::Hierarchical, unequal, 1e6, {}) == Algorithm::Ring);
  CHECK(choose_algorithm(Algorithm::Hierarchical, equal, 1e6, {}) == Algorithm::Hierarchical);
}
