// The fidelities of a collective against each other: every algorithm, every number of ranks, small to large payloads.
#include "tests/support/catch.hpp"
#include "tests/support/lab_run.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

using Algorithm = CollectiveAlgorithm;

constexpr double kKiB = 1024.0;

struct Case {
  int nodes;
  int gpus;
  double bytes;
  Algorithm algorithm;
  double port = 1e9;  ///< rate inside nodes; NICs have 1 GB/s
};

double time_of(const Case& now, Fidelity fidelity) {
  const Cluster cluster =
      lab_cluster(now.nodes, now.gpus, {.nic_latency = 10e-6, .port = now.port, .port_latency = 10e-6});
  return all_reduce_time(cluster, now.nodes * now.gpus, now.bytes, now.algorithm, fidelity);
}

/// `steps` and `fluid` within 1 %, and `folded` equal to `fluid` where a double tree folds.
void agree(const Case& now) {
  INFO(now.nodes << " nodes of " << now.gpus << ", " << now.bytes / kKiB << " KiB");
  const double fluid = time_of(now, Fidelity::Fluid);
  CHECK_THAT(fluid, WithinRel(time_of(now, Fidelity::Steps), 0.01));
  if (now.algorithm == Algorithm::DoubleBinaryTree && now.nodes > 2)
    CHECK_THAT(time_of(now, Fidelity::Folded), WithinRel(fluid, 1e-9));
}

/// All numbers of ranks from 2 to 64 on nodes of 1, 4 and 8.
void agree_on_all_groups(Algorithm algorithm, double bytes) {
  for (const int gpus : {1, 4, 8})
    for (int nodes = gpus == 1 ? 2 : 1; nodes * gpus <= 64; ++nodes) agree({nodes, gpus, bytes, algorithm});
}

}  // namespace

TEST_CASE("steps and fluid agree: ring", "[property]") {
  for (const double kib : {4.0, 256.0, 4096.0, 65536.0}) agree_on_all_groups(Algorithm::Ring, kib * kKiB);
}

TEST_CASE("steps and fluid agree: double binary tree", "[property]") {
  for (const double kib : {4.0, 64.0, 256.0, 1024.0, 4096.0, 65536.0})
    agree_on_all_groups(Algorithm::DoubleBinaryTree, kib * kKiB);
}

TEST_CASE("steps and fluid agree: halving-doubling", "[property]") {
  for (const double kib : {4.0, 256.0, 4096.0, 65536.0}) agree_on_all_groups(Algorithm::HalvingDoubling, kib * kKiB);
}

TEST_CASE("steps and fluid agree: hierarchical", "[property]") {
  for (const double kib : {4.0, 256.0, 4096.0, 65536.0}) agree_on_all_groups(Algorithm::Hierarchical, kib * kKiB);
}

TEST_CASE("steps and fluid agree: chain", "[property]") {
  for (const double kib : {4.0, 256.0, 4096.0, 65536.0}) agree_on_all_groups(Algorithm::BroadcastReduce, kib * kKiB);
}

TEST_CASE("steps and fluid agree: trees and chains with faster links inside nodes", "[property]") {
  for (const auto algorithm : {Algorithm::DoubleBinaryTree, Algorithm::BroadcastReduce})
    for (const double kib : {256.0, 4096.0})
      for (const int nodes : {2, 3, 5, 8}) agree({nodes, 8, kib * kKiB, algorithm, 50e9});
}
