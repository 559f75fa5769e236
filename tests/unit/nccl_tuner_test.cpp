// NCCL's own model of its time, by hand from the tables of NCCL 2.30. Latencies in us, bandwidths in GB/s.
#include "sim/plan/nccl_tuner.hpp"

#include "platforms/reader.hpp"
#include "sim/plan/compile.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

using Algorithm = CollectiveAlgorithm;

constexpr double kExact = 1e-9;
constexpr double kMiB = 1024.0 * 1024.0;

NcclCall all_reduce(int ranks, int nodes, double bytes) {
  return {CollectivePrimitive::AllReduce, ranks, nodes, bytes};
}

double us(const NcclView& view, const NcclCall& call, Algorithm algorithm, NcclProtocol protocol) {
  return 1e6 * nccl_time(view, call, algorithm, protocol).value().value();
}

/// A DGX-1 with 8 V100: 6 channels of 20 GB/s over NVLink.
NcclView v100() {
  return {.generation = 0, .nvlink = true, .ll128 = true, .ring = {6, 20.0, 20.0}, .tree = {6, 20.0, 20.0}};
}

Cluster g4dn(std::optional<BytesPerSecond> reported) {
  Cluster cluster = find_cluster("g4dn.12xlarge");
  cluster.links.at("ethernet").reported_bandwidth = reported;
  return cluster;
}

}  // namespace

TEST_CASE("NCCL's times of rings on one node", "[plan][nccl]") {
  const NcclView view = v100();
  // LL: 6.6 + 14 x 0.6 = 15; min(39, 60) x 8/14 = 22.29.
  CHECK_THAT(us(view, all_reduce(8, 1, 1024.0), Algorithm::Ring, NcclProtocol::LL),
             WithinRel(15.0 + 1.024 / (39.0 * 8 / 14), kExact));
  CHECK(nccl_choice(view, all_reduce(8, 1, 1024.0)).protocol == NcclProtocol::LL);
  // LL128: 14 + 14 x 1.9 = 40.6; min(0.92 x 120, 6 x 20) x 8/14 = 63.09: 57.2 us.
  CHECK_THAT(us(view, all_reduce(8, 1, kMiB), Algorithm::Ring, NcclProtocol::LL128),
             WithinRel(40.6 + kMiB / 1e3 / (110.4 * 8 / 14), kExact));
  CHECK(nccl_choice(view, all_reduce(8, 1, kMiB)).protocol == NcclProtocol::LL128);
  // Simple: 8.4 + 14 x 3.4 = 56; 120 x 8/14.
  CHECK_THAT(us(view, all_reduce(8, 1, 256 * kMiB), Algorithm::Ring, NcclProtocol::Simple),
             WithinRel(56.0 + 256 * kMiB / 1e3 / (120.0 * 8 / 14), kExact));
  CHECK(nccl_choice(view, all_reduce(8, 1, 256 * kMiB)).algorithm == Algorithm::Ring);
}

TEST_CASE("a tree is corrected by size, and its protocols have their limits", "[plan][nccl]") {
  // 4 nodes of 8, 4 NICs: 4 channels of 12.
  const NcclView view{.generation = 0, .nvlink = true, .ll128 = true, .ring = {4, 12.0, 12.0}, .tree = {4, 12.0, 12.0}};
  // 1 MiB = 64 B x 2^14. Simple: 8.4 + 2 (7 x 4 + 2 x 14) = 120.4; min(0.92 x 48, 4 x 10) / 2 x 0.5 = 10.
  CHECK_THAT(us(view, all_reduce(32, 4, kMiB), Algorithm::DoubleBinaryTree, NcclProtocol::Simple),
             WithinRel(120.4 + kMiB / 1e3 / 10.0, kExact));
  // LL: 6.8 + 2 (7 x 0.6 + 2 x 5) = 35.2; min(40 / 3.8, 20.4) / 2 x 0.5.
  CHECK_THAT(us(view, all_reduce(32, 4, kMiB), Algorithm::DoubleBinaryTree, NcclProtocol::LL),
             WithinRel(35.2 + kMiB / 1e3 / (40.0 / 3.8 / 2 * 0.5), kExact));
  // LL128: 14 + 2 (7 x 1.25 + 2 x 8.5) = 65.5; min(40 x 120/128, 4 x 20) / 2 x 0.6.
  CHECK_THAT(us(view, all_reduce(32, 4, kMiB), Algorithm::DoubleBinaryTree, NcclProtocol::LL128),
             WithinRel(65.5 + kMiB / 1e3 / (37.5 / 2 * 0.6), kExact));
  // Ring, Simple: (8.4 + (62 - 6) x 3.4 + 6 x 14) x 1.9; 48 x 32/62.
  CHECK_THAT(us(view, all_reduce(32, 4, kMiB), Algorithm::Ring, NcclProtocol::Simple),
             WithinRel((8.4 + 56 * 3.4 + 84.0) * 1.9 + kMiB / 1e3 / (48.0 * 32 / 62), kExact));
}

TEST_CASE("NCCL has a ring only for whatever is no all-reduce, and LL128 where it is on", "[plan][nccl]") {
  NcclView view = v100();
  const NcclCall gather{CollectivePrimitive::AllGather, 8, 1, 1024.0};
  CHECK_FALSE(nccl_time(view, gather, Algorithm::DoubleBinaryTree, NcclProtocol::LL));
  // Counted by what every rank receives, 8 KiB: 6.6 + 7 x 0.6; min(39, 60) x 8/7.
  CHECK_THAT(us(view, gather, Algorithm::Ring, NcclProtocol::LL), WithinRel(10.8 + 8.192 / (39.0 * 8 / 7), kExact));
  CHECK_FALSE(nccl_time(view, all_reduce(8, 1, 1024.0), Algorithm::HalvingDoubling, NcclProtocol::LL));
  view.ll128 = false;
  CHECK_FALSE(nccl_time(view, all_reduce(8, 1, 1024.0), Algorithm::Ring, NcclProtocol::LL128));
}

TEST_CASE("what NCCL sees of two g4dn.12xlarge depends on what the NIC's driver says", "[plan][nccl]") {
  const double bucket = 25 * kMiB;  // 64 B x 2^18 and more: the tree's Simple is corrected by 0.7
  // 50 Gbit/s are 6.25: one channel of 6. A tree inside two nodes: PCIe has (12 - 3) / 1.2 = 7.5 left: 7.
  //   ring, Simple: (8.4 + 12 x 5.7 + 2 x 14) x 1.9 + 25 MiB / (6 x 8/14) = 7845 us
  //   tree, Simple: 8.4 + 2 (3 x 4 + 14) + 25 MiB / (7 x 0.92 / 2 x 0.7) = 11691 us
  const Cluster full = g4dn(std::nullopt);
  const NcclView wide = nccl_view(full, full.workers(8));
  CHECK(wide.ring.channels == 1);
  CHECK(wide.ring.inter == 6.0);
  CHECK(wide.tree.intra == 7.0);
  CHECK_FALSE(wide.ll128);
  CHECK_THAT(us(wide, all_reduce(8, 2, bucket), Algorithm::Ring, NcclProtocol::Simple),
             WithinRel(104.8 * 1.9 + bucket / 1e3 / (6.0 * 8 / 14), kExact));
  CHECK_THAT(us(wide, all_reduce(8, 2, bucket), Algorithm::DoubleBinaryTree, NcclProtocol::Simple),
             WithinRel(60.4 + bucket / 1e3 / (7.0 * 0.92 / 2 * 0.7), kExact));
  CHECK(nccl_choice(wide, all_reduce(8, 2, bucket)).algorithm == Algorithm::Ring);
  // 10 Gbit/s are 1.25: a channel of 1.2, and room inside for a tree of 2.4: 0.77 GB/s against the ring's 0.69.
  const Cluster unknown = g4dn(BytesPerSecond{1.25e9});
  const NcclView narrow = nccl_view(unknown, unknown.workers(8));
  CHECK(narrow.ring.inter == 1.2);
  CHECK(narrow.tree.intra == 2.4);
  CHECK(nccl_choice(narrow, all_reduce(8, 2, bucket)).algorithm == Algorithm::DoubleBinaryTree);
  // On more than two nodes what is between them counts: the tree has 1.2 x 0.92 / 2 x 0.7. 1 KiB with LL:
  //   ring 6.6 + 24 x 1 + 6 x 2.7 + 1.024 / (0.6 x 16/30) = 50 us, tree 6.8 + 2 (3 x 1 + 2 x 5) + 1.024 / 0.131 = 41 us
  const NcclView four = nccl_view(unknown, unknown.workers(16));
  CHECK(nccl_choice(four, all_reduce(16, 4, bucket)).algorithm == Algorithm::Ring);
  CHECK(nccl_choice(four, all_reduce(16, 4, 1024.0)).algorithm == Algorithm::DoubleBinaryTree);
}

TEST_CASE("NCCL 2.7 takes the ring where 2.30 takes the tree", "[plan][nccl]") {
  // Two g4dn.12xlarge as above. At 64 B x 2^18 version 2.7 corrects the tree by 0.6, and has 0.9 of the bus:
  //   ring, Simple: (8.4 + 12 x 5.7 + 2 x 9.6) x 1.9 + 25 MiB / (1.2 x 8/14) = 38412 us
  //   tree, Simple: 2 (3 x 28 + 50) + 25 MiB / (2.4 x 0.9 / 2 x 0.6) = 40723 us
  const double bucket = 25 * kMiB;
  Cluster cluster = g4dn(BytesPerSecond{1.25e9});
  cluster.collective.nccl_version = 20708;
  const NcclView view = nccl_view(cluster, cluster.workers(8));
  CHECK_THAT(us(view, all_reduce(8, 2, bucket), Algorithm::Ring, NcclProtocol::Simple),
             WithinRel(96.0 * 1.9 + bucket / 1e3 / (1.2 * 8 / 14), kExact));
  CHECK_THAT(us(view, all_reduce(8, 2, bucket), Algorithm::DoubleBinaryTree, NcclProtocol::Simple),
             WithinRel(268.0 + bucket / 1e3 / (2.4 * 0.9 / 2 * 0.6), kExact));
  CHECK(nccl_choice(view, all_reduce(8, 2, bucket)).algorithm == Algorithm::Ring);
  // 2.4: ring 6 x 15 = 90 us and 5 GB/s, tree 15 x 2 + 4 x 3 = 42 us and 2/3 of that: equal at 48 us x 10 GB/s = 480
  // KB.
  cluster.collective.nccl_version = 20408;
  const NcclView threshold = nccl_view(cluster, cluster.workers(16));
  CHECK(nccl_choice(threshold, all_reduce(16, 4, 479e3)).algorithm == Algorithm::DoubleBinaryTree);
  CHECK(nccl_choice(threshold, all_reduce(16, 4, 481e3)).algorithm == Algorithm::Ring);
  CHECK(nccl_choice(threshold, all_reduce(4, 1, 1e3)).algorithm == Algorithm::Ring);
  // Before 2.4: rings only.
  cluster.collective.nccl_version = 20307;
  const NcclView old = nccl_view(cluster, cluster.workers(16));
  CHECK(nccl_choice(old, all_reduce(16, 4, 4096.0)).algorithm == Algorithm::Ring);
}

TEST_CASE("NCCL 2.6 and 2.14 have tables of their own", "[plan][nccl]") {
  // Two g4dn.12xlarge as above: a ring of 1.2 GB/s, a tree of 2.4 inside two nodes.
  const double bucket = 25 * kMiB;
  Cluster cluster = g4dn(BytesPerSecond{1.25e9});
  const auto time = [&](int version, Algorithm algorithm) {
    cluster.collective.nccl_version = version;
    return us(nccl_view(cluster, cluster.workers(8)), all_reduce(8, 2, bucket), algorithm, NcclProtocol::Simple);
  };
  // 2.6: all 14 hops of the ring count as ones between nodes, 6.6 us each, without a surcharge.
  CHECK_THAT(time(20603, Algorithm::Ring), WithinRel(8.4 + 14 * 6.6 + bucket / 1e3 / (1.2 * 8 / 14), kExact));
  CHECK_THAT(time(20603, Algorithm::DoubleBinaryTree),
             WithinRel(2 * (3 * 28 + 50) + bucket / 1e3 / (2.4 * 0.9 / 2 * 0.6), kExact));
  CHECK(time(20506, Algorithm::Ring) == time(20603, Algorithm::Ring));
  // 2.14: 2 N of them do.
  CHECK_THAT(time(21403, Algorithm::Ring),
             WithinRel((8.4 + 10 * 5.7 + 4 * 9.6) * 1.9 + bucket / 1e3 / (1.2 * 8 / 14), kExact));
  CHECK_THAT(time(21403, Algorithm::DoubleBinaryTree),
             WithinRel(2 * (3 * 28 + 28) + bucket / 1e3 / (2.4 * 0.92 / 2 * 0.7), kExact));
  CHECK(time(21003, Algorithm::Ring) == time(21403, Algorithm::Ring));
  CHECK(time(21805, Algorithm::Ring) == time(23007, Algorithm::Ring));
}

TEST_CASE("what NCCL sees of DGX nodes", "[plan][nccl]") {
  // DGX-1: 6 NVLinks of 20 GB/s are 3 channels of 40 on one node, split in two; 4 NICs of 12.5 between nodes.
  const Cluster dgx1 = find_cluster("dgx-1");
  const NcclView one = nccl_view(dgx1, dgx1.workers(8));
  CHECK(one.ring.channels == 6);
  CHECK(one.ring.intra == 20.0);
  CHECK(one.ll128);
  const NcclView two = nccl_view(dgx1, dgx1.workers(16));
  CHECK(two.ring.channels == 4);
  CHECK(two.ring.inter == 12.0);
  CHECK(two.tree.intra == 24.0);
  CHECK(two.generation == 0);
  CHECK(nccl_view(find_cluster("dgx-a100"), find_cluster("dgx-a100").workers(16)).generation == 1);
  CHECK(nccl_view(find_cluster("dgx-h100"), find_cluster("dgx-h100").workers(16)).generation == 2);
}
