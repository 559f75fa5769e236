// Times of the collective algorithms against their closed forms, and the three fidelities against each other.
#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "models/reader.hpp"
#include "strategies/builders.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab_run.hpp"
#include "tests/support/small_problems.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

using Algorithm = CollectiveAlgorithm;

constexpr double kRate = 1e9;
constexpr double kAlpha = 10e-6;
constexpr double kClosed = 1e-6;  ///< messages are whole bytes: half a byte of 10^6
constexpr double kMiB = 1024.0 * 1024.0;

Cluster homogeneous(int nodes, int gpus) {
  return lab_cluster(nodes, gpus, {.nic = kRate, .nic_latency = kAlpha, .port = kRate, .port_latency = kAlpha});
}

double time_of(int nodes, int gpus, double bytes, Algorithm algorithm, Fidelity fidelity) {
  return all_reduce_time(homogeneous(nodes, gpus), nodes * gpus, bytes, algorithm, fidelity);
}

void agree(int nodes, int gpus, double bytes, Algorithm algorithm) {
  INFO("algorithm " << static_cast<int>(algorithm) << ", " << nodes << " nodes of " << gpus << ", " << bytes
                    << " bytes");
  const double steps = time_of(nodes, gpus, bytes, algorithm, Fidelity::Steps);
  CHECK_THAT(time_of(nodes, gpus, bytes, algorithm, Fidelity::Fluid), WithinRel(steps, 0.01));
}

void same_folded(const LabModel& lab, const Cluster& cluster, const Strategy& strategy) {
  const double fluid = step_of(lab, cluster, strategy, Fidelity::Fluid);
  CHECK_THAT(step_of(lab, cluster, strategy, Fidelity::Folded), WithinRel(fluid, 0.001));
}

}  // namespace

TEST_CASE("ring all-reduce takes 2(n-1)/n S/B + 2(n-1) alpha", "[engine][collective]") {
  for (int n = 2; n <= 64; n += n < 16 ? 1 : 16) {
    // 2(n-1) rounds of S/n bytes and one latency each.
    const double bytes = 4e6 * n;
    const double expected = 2.0 * (n - 1) * (bytes / n / kRate + kAlpha);
    CHECK_THAT(time_of(n, 1, bytes, Algorithm::Ring, Fidelity::Steps), WithinRel(expected, kClosed));
    CHECK_THAT(time_of(n, 1, bytes, Algorithm::Ring, Fidelity::Fluid), WithinRel(expected, kClosed));
    CHECK_THAT(time_of(1, n, bytes, Algorithm::Ring, Fidelity::Fluid), WithinRel(expected, kClosed));
  }
}

TEST_CASE("a ring with fast and slow hops keeps the pace of the slow one or of the way round", "[engine][collective]") {
  // 2 nodes of 8, S = 16 MB, 30 rounds of 1 MB: 1 ms between nodes at 1 GB/s, 10 us inside at 100 GB/s; latency a
  // between nodes. The slow hop is busy for 30 ms, and a message leaves it a later. Or a message crosses from node to
  // node four times, 4 (1 ms + a), with 7 hops inside between two crossings, 21 x 10 us, and the other 5 rounds are
  // spent at the slow hop, 5 ms.
  //   a = 10 us: 30.01 ms against 9.25 ms. a = 20 ms: 50 ms against 89.21 ms.
  for (const Fidelity fidelity : {Fidelity::Steps, Fidelity::Fluid}) {
    const auto time = [&](double latency) {
      const Cluster cluster = lab_cluster(2, 8, {.nic = 1e9, .nic_latency = latency, .port = 100e9});
      return all_reduce_time(cluster, 16, 16e6, Algorithm::Ring, fidelity);
    };
    CHECK_THAT(time(10e-6), WithinRel(30.01e-3, kClosed));
    CHECK_THAT(time(20e-3), WithinRel(89.21e-3, kClosed));
  }
}

TEST_CASE("double binary tree: first message up and down, all others at the NIC's pace", "[engine][collective]") {
  for (const int depth : {1, 2, 3, 4, 6}) {
    // 2^d nodes and one message m = S/2 per edge: two siblings share their parent's NIC on every level but the
    // topmost, where the root has one child: 2 d alpha + 2 (2 (d-1) + 1) m / B.
    const int n = 1 << depth;
    const double expected = 2 * depth * kAlpha + (4 * depth - 2) * 2000.0 / kRate;
    CHECK_THAT(time_of(n, 1, 4000.0, Algorithm::DoubleBinaryTree, Fidelity::Steps), WithinRel(expected, kClosed));
    CHECK_THAT(time_of(n, 1, 4000.0, Algorithm::DoubleBinaryTree, Fidelity::Fluid), WithinRel(expected, kClosed));
  }
  // 5 nodes: the root (node 3) has children 1 and 4, node 1 has 0 and 2. Up: 0 and 2 share a NIC (2 m), then 1 alone,
  // for 4 came before it (1 m). Down: both children at once (2 m), twice: 7 m and 4 alpha.
  for (const Fidelity fidelity : {Fidelity::Steps, Fidelity::Fluid})
    CHECK_THAT(time_of(5, 1, 4000.0, Algorithm::DoubleBinaryTree, fidelity),
               WithinRel(4 * kAlpha + 7 * 2000.0 / kRate, kClosed));
}

TEST_CASE("halving-doubling takes 2(n-1)/n S/B + 2 log2 n alpha where n is a power of two", "[engine][collective]") {
  for (const Fidelity fidelity : {Fidelity::Steps, Fidelity::Fluid}) {
    for (const int n : {2, 4, 8, 64}) {
      const double expected = 2.0 * (n - 1) / n * 64e6 / kRate + 2.0 * std::log2(n) * kAlpha;
      CHECK_THAT(time_of(n, 1, 64e6, Algorithm::HalvingDoubling, fidelity), WithinRel(expected, kClosed));
    }
  }
}

TEST_CASE("halving-doubling over other numbers of ranks: blocks work side by side", "[engine][collective]") {
  for (const Fidelity fidelity : {Fidelity::Steps, Fidelity::Fluid}) {
    // Two blocks, b and b/2: a rank of the larger one has (b-1)/b S from its block and 1/b S from the other, both ways:
    // 2 S/B, in log2 b rounds there and back.
    for (const auto& [n, block] : {std::pair{3, 2}, {6, 4}, {12, 8}, {48, 32}})
      CHECK_THAT(time_of(n, 1, 64e6, Algorithm::HalvingDoubling, fidelity),
                 WithinRel(2.0 * 64e6 / kRate + 2.0 * std::log2(block) * kAlpha, kClosed));
    // 7 = 4 + 2 + 1: the block of two has its own 1/2 S and 1/2 S from rank 6 after S/B, and then sends 1/2 S on.
    CHECK_THAT(time_of(7, 1, 64e6, Algorithm::HalvingDoubling, fidelity),
               WithinRel(3.0 * 64e6 / kRate + 4.0 * kAlpha, kClosed));
    // 5 = 4 + 1: as with two blocks, but what rank 4 sends begins with the first of two rounds and fills the second's
    // latency.
    const double five = time_of(5, 1, 64e6, Algorithm::HalvingDoubling, fidelity);
    CHECK(five <= (2.0 * 64e6 / kRate + 4.0 * kAlpha) * (1.0 + kClosed));
    CHECK(five >= 2.0 * 64e6 / kRate + 2.0 * kAlpha);
  }
}

TEST_CASE("the two trees of a double binary tree share a collective's channels", "[engine][collective]") {
  // Two nodes of one GPU, NICs of 1 GB/s, streams of 0.1 GB/s. Ring: 2 rounds of S/2 on one stream each way: S / 0.1
  // GB/s. Tree: S/2 up one tree and S/2 down the other in each direction, which has the same one stream, or the same
  // four: no faster than the ring. Over many pieces the way of the first one adds little.
  // It is the same inside a node, where a collective has one stream.
  Cluster one_node = lab_cluster(1, 2);
  one_node.links.at("port").per_flow_cap = BytesPerSecond{0.1e9};
  CHECK_THAT(all_reduce_time(one_node, 2, 64e6, Algorithm::Ring, Fidelity::Fluid), WithinRel(0.64, 1e-3));
  CHECK(all_reduce_time(one_node, 2, 64e6, Algorithm::DoubleBinaryTree, Fidelity::Fluid) >= 0.64);
  Cluster cluster = lab_cluster(2, 1, {.nic = 1e9});
  cluster.links.at("nic").per_flow_cap = BytesPerSecond{0.1e9};
  for (const int channels : {1, 4}) {
    cluster.collective.channels = channels;
    const double at_pace = 64e6 / (0.1e9 * channels);
    CHECK_THAT(all_reduce_time(cluster, 2, 64e6, Algorithm::Ring, Fidelity::Fluid), WithinRel(at_pace, 1e-3));
    const double tree = all_reduce_time(cluster, 2, 64e6, Algorithm::DoubleBinaryTree, Fidelity::Fluid);
    CHECK(tree >= at_pace);
    CHECK(tree <= 1.05 * at_pace);
    CHECK_THAT(all_reduce_time(cluster, 2, 64e6, Algorithm::DoubleBinaryTree, Fidelity::Steps), WithinRel(tree, 0.01));
  }
}

TEST_CASE("hierarchical all-reduce: inside, between, inside", "[engine][collective]") {
  // N nodes of g = 8: 2 (g-1) rounds of S/g inside; 2 (N-1) rounds in which the 8 rings of a node share its NIC, S/N in
  // all. S = 48 MB.
  for (const int nodes : {2, 3, 8}) {
    const double inside = 14.0 * (6e6 / kRate + kAlpha);
    const double between = 2.0 * (nodes - 1) * (48e6 / nodes / kRate + kAlpha);
    for (const Fidelity fidelity : {Fidelity::Steps, Fidelity::Fluid})
      CHECK_THAT(time_of(nodes, 8, 48e6, Algorithm::Hierarchical, fidelity), WithinRel(inside + between, kClosed));
  }
}

TEST_CASE("a chain: one message goes all the way up and down", "[engine][collective]") {
  // 4 KB are one message: 2 (n-1) hops of S/B + alpha.
  for (const int n : {2, 3, 9})
    for (const Fidelity fidelity : {Fidelity::Steps, Fidelity::Fluid})
      CHECK_THAT(time_of(n, 1, 4000.0, Algorithm::BroadcastReduce, fidelity),
                 WithinRel(2.0 * (n - 1) * (4e-6 + kAlpha), kClosed));
}

TEST_CASE("steps and fluid agree within 1 % on homogeneous links", "[engine][fidelity]") {
  // All numbers of ranks and more sizes: tests/property/fidelity_grid_test.cpp.
  for (const auto algorithm : {Algorithm::Ring, Algorithm::DoubleBinaryTree, Algorithm::HalvingDoubling,
                               Algorithm::Hierarchical, Algorithm::BroadcastReduce}) {
    const bool streams = algorithm == Algorithm::BroadcastReduce || algorithm == Algorithm::DoubleBinaryTree;
    for (const double bytes : {4096.0, 256.0 * 1024.0, 4.0 * kMiB, 256.0 * kMiB}) {
      for (const int n : {2, 3, 4, 6, 7, 8, 13, 16, 24, 33, 64}) {
        if (streams && bytes > 4.0 * kMiB && n > 16) continue;  // 512 messages a hop
        agree(n, 1, bytes, algorithm);
      }
      for (const int nodes : {1, 2, 3, 8}) agree(nodes, 8, bytes, algorithm);
    }
  }
}

TEST_CASE("a tree hides the latency of every message but the first", "[engine][fidelity]") {
  // Two nodes, each the root of one tree and a leaf of the other: each NIC sends the messages of one tree up and those
  // of the other down. 512 KiB are 4 messages of m = 64 KiB per tree. The latency is m / B: the first two messages up
  // leave at 0 and m / B, the first has arrived at 2 m / B and goes down, and the NIC never rests. So its 8 messages
  // take 8 m / B, and the last one's latency is all that comes on top.
  const double message = 64.0 * 1024.0 / kRate;
  for (const Fidelity fidelity : {Fidelity::Steps, Fidelity::Fluid}) {
    const Cluster cluster = lab_cluster(2, 1, {.nic = kRate, .nic_latency = message});
    CHECK_THAT(all_reduce_time(cluster, 2, 512.0 * 1024.0, Algorithm::DoubleBinaryTree, fidelity),
               WithinRel(9.0 * message, kClosed));
  }
}

TEST_CASE("folded and fluid agree within 0.1 % for every algorithm that folds", "[engine][fidelity]") {
  for (const auto algorithm :
       {Algorithm::Ring, Algorithm::DoubleBinaryTree, Algorithm::HalvingDoubling, Algorithm::Hierarchical}) {
    for (const double bytes : {4096.0, 4.0 * kMiB, 256.0 * kMiB}) {
      const LabModel lab{{.bytes = bytes}};
      for (const auto& [nodes, gpus] : {std::pair{4, 1}, {8, 1}, {64, 1}, {4, 8}, {8, 8}}) {
        INFO("algorithm " << static_cast<int>(algorithm) << ", " << nodes << " nodes of " << gpus << ", " << bytes
                          << " bytes");
        same_folded(lab, homogeneous(nodes, gpus), all_reduced(lab.model, nodes * gpus, algorithm));
      }
    }
  }
}

TEST_CASE("folded and fluid agree on DDP plans of ResNet-50, also with a straggler", "[engine][fidelity]") {
  const Model model = find_model("resnet50");
  const Profile profile = estimate_profile(model, Roofline{}, 32);
  Cluster cluster = homogeneous(16, 4);
  for (const double slowdown : {1.0, 1.5}) {
    if (slowdown > 1.0) {
      cluster.groups.push_back(cluster.groups.front());
      cluster.groups[0].count = 15;
      cluster.groups[1].count = 1;
      cluster.groups[1].name = "slow";
      cluster.groups[1].compute_slowdown = slowdown;
    }
    const Plan plan = compile(model, profile, cluster, build_strategy("ddp", request_for(model, cluster, 64)));
    const Prediction fluid = replay(plan, cluster, {.fidelity = Fidelity::Fluid});
    const Prediction folded = replay(plan, cluster, {.fidelity = Fidelity::Auto});
    CHECK(folded.fidelity == Fidelity::Folded);
    CHECK(folded.simulated_ranks == (slowdown > 1.0 ? 8 : 4));
    CHECK_THAT(folded.step.value(), WithinRel(fluid.step.value(), 0.001));
  }
}

TEST_CASE("a framework that waits before it launches a collective binds no node: such plans fold",
          "[engine][fidelity]") {
  const Model model = find_model("resnet50");
  const Profile profile = estimate_profile(model, Roofline{}, 32);
  const Cluster cluster = homogeneous(8, 4);
  const BuildRequest request = request_for(model, cluster, 32, {{"algorithm", "ring"}});
  const Plan plan = compile(model, profile, cluster, build_strategy("horovod", request));
  REQUIRE(std::any_of(plan.ops.begin(), plan.ops.end(), [](const Op& op) {
    const auto* work = std::get_if<HostWork>(&op.body);
    return work != nullptr && work->action == HostAction::Wait && work->at.is_fixed();
  }));
  for (const Solver solver : {Solver::SimGrid, Solver::Native}) {
    const Prediction fluid = replay(plan, cluster, {.fidelity = Fidelity::Fluid, .solver = solver});
    const Prediction folded = replay(plan, cluster, {.fidelity = Fidelity::Folded, .solver = solver});
    CHECK(folded.simulated_ranks < fluid.simulated_ranks);
    CHECK_THAT(folded.step.value(), WithinRel(fluid.step.value(), 1e-9));
  }
}

TEST_CASE("what cannot be folded says why", "[engine][fidelity]") {
  const LabModel lab{{.bytes = 4000}};
  const auto folded = [&](const Cluster& cluster, const Strategy& strategy) {
    return run(lab, cluster, strategy, {.fidelity = Fidelity::Folded});
  };
  CHECK_THROWS_WITH(
      folded(lab_cluster(4, 1, {}, 1), on_server(lab.model, 4, {4, -1})),
      ContainsSubstring("SimGrid counts a flow once, whomever it stands for; --set solver=native folds it"));
  CHECK_THROWS_WITH(folded(lab_cluster(6, 1), all_reduced(lab.model, 6, Algorithm::HalvingDoubling)),
                    ContainsSubstring("no power of two"));
  CHECK_THROWS_WITH(folded(lab_cluster(6, 1), all_reduced(lab.model, 6, Algorithm::BroadcastReduce)),
                    ContainsSubstring("chain"));
  Cluster leaves = lab_cluster(4, 1);
  leaves.network.nodes_per_leaf = 2;
  CHECK_THROWS_WITH(folded(leaves, all_reduced(lab.model, 4)), ContainsSubstring("leaf uplinks"));
}
