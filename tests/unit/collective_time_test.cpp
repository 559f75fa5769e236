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

double closed_form(const LabLinks& wires, Shape shape, Algorithm algorithm, double bytes) {
  GroupShape group;
  for (int node = 0; node <= shape.nodes; ++node) group.node_begin.push_back(node * shape.gpus);
  const Cluster cluster = lab_cluster(shape.nodes, shape.gpus, wires);
  return collective_time({CollectivePrimitive::AllReduce, algorithm}, group, bytes,
                         link_rates(cluster, cluster.workers(shape.nodes * shape.gpus)).front().rates)
      .value();
}

double simulated(const LabLinks& wires, Shape shape, Algorithm algorithm, double bytes, Fidelity fidelity) {
  return all_reduce_time(lab_cluster(shape.nodes, shape.gpus, wires), shape.nodes * shape.gpus, bytes, algorithm,
                         fidelity);
}

/// Closed form and engine for one payload.
void same(const LabLinks& wires, Shape shape, Algorithm algorithm, double bytes, Fidelity fidelity) {
  INFO(shape.nodes << " nodes of " << shape.gpus << ", " << bytes << " bytes, algorithm "
                   << static_cast<int>(algorithm));
  CHECK_THAT(simulated(wires, shape, algorithm, bytes, fidelity),
             WithinRel(closed_form(wires, shape, algorithm, bytes), kClosed));
}

/// Small, medium and large payloads that all ranks divide.
void same(const LabLinks& wires, Shape shape, Algorithm algorithm, Fidelity fidelity = Fidelity::Fluid) {
  for (const double unit : {16.0, 40e3, 4e6}) same(wires, shape, algorithm, unit * shape.nodes * shape.gpus, fidelity);
}

/// Messages that flow through: the closed form has the ones behind the first follow at the pace of the steady state.
/// That is exact for one message. More of them take between the work of the busiest link, which carries the payload
/// `busiest` times at a NIC's rate, and the closed form.
void streams(const LabLinks& wires, Shape shape, Algorithm algorithm, double busiest) {
  const int ranks = shape.nodes * shape.gpus;
  same(wires, shape, algorithm, 16.0 * ranks, Fidelity::Fluid);
  for (const double bytes : {40e3 * ranks, 4e6 * ranks}) {
    INFO(shape.nodes << " nodes of " << shape.gpus << ", " << bytes << " bytes");
    const double engine = simulated(wires, shape, algorithm, bytes, Fidelity::Fluid);
    CHECK(engine >= busiest * bytes / wires.nic);
    CHECK(engine <= closed_form(wires, shape, algorithm, bytes) * (1.0 + kClosed));
  }
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
  for (const int n : {2, 3, 6, 7, 8, 12, 48}) same(kAlike, {n, 1}, Algorithm::HalvingDoubling);
  for (const int nodes : {1, 2, 4}) same(kFastInside, {nodes, 8}, Algorithm::HalvingDoubling);
  same(kFastInside, {4, 8}, Algorithm::HalvingDoubling, Fidelity::Steps);
}

TEST_CASE("closed form of hierarchical all-reduce: inside, between, inside", "[plan][engine][collective]") {
  for (const Shape shape : {Shape{1, 8}, {2, 8}, {5, 3}, {8, 1}}) same(kFastInside, shape, Algorithm::Hierarchical);
  same(kFastInside, {3, 4}, Algorithm::Hierarchical, Fidelity::Steps);
}

TEST_CASE("closed form of a chain: exact for one message", "[plan][engine][collective]") {
  // Inside the chain a rank, or a node, has the payload in once on the way up and once on the way down; two ranks, or
  // nodes, have nothing between them: each direction carries it once.
  for (const Shape shape : {Shape{2, 1}, {1, 2}}) same(kAlike, shape, Algorithm::BroadcastReduce);
  for (const Shape shape : {Shape{3, 1}, {9, 1}, {1, 8}}) streams(kAlike, shape, Algorithm::BroadcastReduce, 2.0);
  for (const Shape shape : {Shape{4, 2}, {3, 8}}) streams(kFastInside, shape, Algorithm::BroadcastReduce, 2.0);
  streams(kFastInside, {2, 4}, Algorithm::BroadcastReduce, 1.0);
}

TEST_CASE("closed form of a double binary tree on four nodes and more: exact for one message",
          "[plan][engine][collective]") {
  for (const int nodes : {4, 7, 8, 16}) streams(kAlike, {nodes, 1}, Algorithm::DoubleBinaryTree, 2.0);
}

TEST_CASE("a node of one rank does not hide how fast the others are inside", "[plan][collective]") {
  // Nodes with 1 and 3 ranks: the neighbors are on the second.
  const Cluster cluster = lab_cluster(2, 3, kFastInside);
  const LinkRates rates = link_rates(cluster, {{0, 0}, {1, 0}, {1, 1}, {1, 2}}).front().rates;
  CHECK_THAT(rates.rate_intra.value(), WithinRel(20e9, 1e-12));
  CHECK_THAT(rates.alpha_intra.value(), WithinRel(2e-6, 1e-12));
  CHECK_THAT(rates.rate_inter.value(), WithinRel(1e9, 1e-12));
}

TEST_CASE("hierarchical over unequal nodes is a ring, by name", "[plan][collective]") {
  const GroupShape unequal{.node_begin = {0, 2, 5}};
  const GroupShape equal{.node_begin = {0, 2, 4}};
  const auto chosen = [](const GroupShape& group) {
    return choose(CollectivePrimitive::AllReduce, Algorithm::Hierarchical, {group, {{}}, {}}, 1e6).algorithm;
  };
  CHECK(chosen(unequal) == Algorithm::Ring);
  CHECK(chosen(equal) == Algorithm::Hierarchical);
}
