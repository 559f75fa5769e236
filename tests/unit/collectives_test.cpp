// Steps and bytes of every collective algorithm, counted on its hops. The payload is 1, so shares read as bytes / S.
#include "sim/plan/collectives.hpp"

#include <algorithm>
#include <map>

#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

GroupShape group_of(int nodes, int per_node) {
  GroupShape group;
  for (int node = 0; node <= nodes; ++node) group.node_begin.push_back(node * per_node);
  return group;
}

CollectiveSchedule all_reduce(CollectiveAlgorithm algorithm, const GroupShape& group, int chunks = 1) {
  return schedule_of(CollectivePrimitive::AllReduce, algorithm, group, chunks);
}

double total_bytes(const CollectiveSchedule& schedule) {
  double sum = 0.0;
  for (const Hop& hop : schedule.hops) sum += hop.bytes;
  return sum;
}

/// The most that one rank sends or receives.
double busiest_rank(const CollectiveSchedule& schedule) {
  std::map<std::pair<int, bool>, double> bytes;
  double most = 0.0;
  for (const Hop& hop : schedule.hops) {
    most = std::max(most, bytes[{hop.from, true}] += hop.bytes);
    most = std::max(most, bytes[{hop.to, false}] += hop.bytes);
  }
  return most;
}

/// The most that crosses one node's NIC in one direction.
double busiest_nic(const CollectiveSchedule& schedule, const GroupShape& group) {
  std::map<std::pair<int, bool>, double> bytes;
  double most = 0.0;
  for (const Hop& hop : schedule.hops) {
    const int from = group.node_of(hop.from);
    const int to = group.node_of(hop.to);
    if (from == to) continue;
    most = std::max(most, bytes[{from, true}] += hop.bytes);
    most = std::max(most, bytes[{to, false}] += hop.bytes);
  }
  return most;
}

constexpr double kExact = 1e-12;

}  // namespace

TEST_CASE("ring all-reduce sends each byte 2(n-1)/n times over every hop", "[plan][collective]") {
  for (int n = 2; n <= 64; ++n) {
    // n hops; 2(n-1) rounds of S/n each: n-1 of reduce-scatter and n-1 of all-gather. In total 2(n-1) S are sent.
    const auto schedule = all_reduce(CollectiveAlgorithm::Ring, group_of(n, 1));
    REQUIRE(schedule.hops.size() == static_cast<std::size_t>(n));
    for (const Hop& hop : schedule.hops) {
      REQUIRE(hop.rounds == 2 * (n - 1));
      REQUIRE_THAT(hop.bytes, WithinRel(2.0 * (n - 1) / n, kExact));
    }
    REQUIRE_THAT(total_bytes(schedule), WithinRel(2.0 * (n - 1), kExact));
  }
}

TEST_CASE("a ring enters and leaves every node once", "[plan][collective]") {
  // 4 nodes of 8: 32 ranks, so 2 x 31/32 S on every hop, and one hop of each node crosses its NIC.
  const GroupShape group = group_of(4, 8);
  REQUIRE_THAT(busiest_nic(all_reduce(CollectiveAlgorithm::Ring, group), group), WithinRel(2.0 * 31 / 32, kExact));
}

TEST_CASE("reduce-scatter and all-gather are half a ring each", "[plan][collective]") {
  for (const int n : {2, 3, 8}) {
    const GroupShape group = group_of(n, 1);
    // Reduce-scatter: n-1 rounds of S/n. All-gather: n-1 rounds of the S that each rank contributes.
    const auto scatter = schedule_of(CollectivePrimitive::ReduceScatter, CollectiveAlgorithm::Ring, group, 1);
    const auto gather = schedule_of(CollectivePrimitive::AllGather, CollectiveAlgorithm::Ring, group, 1);
    for (int i = 0; i < n; ++i) {
      const auto hop = static_cast<std::size_t>(i);
      REQUIRE(scatter.hops[hop].rounds == n - 1);
      REQUIRE_THAT(scatter.hops[hop].bytes, WithinRel((n - 1.0) / n, kExact));
      REQUIRE(gather.hops[hop].rounds == n - 1);
      REQUIRE_THAT(gather.hops[hop].bytes, WithinRel(n - 1.0, kExact));
    }
  }
}

TEST_CASE("double binary tree sends 2(n-1) payloads in all and at most 2 through a NIC", "[plan][collective]") {
  for (int n = 2; n <= 64; ++n) {
    // Two trees, n-1 edges each, half a payload up and half a payload down every edge: 2 x (n-1) x 2 x 1/2.
    const GroupShape group = group_of(n, 1);
    const auto schedule = all_reduce(CollectiveAlgorithm::DoubleBinaryTree, group, 4);
    REQUIRE_THAT(total_bytes(schedule), WithinRel(2.0 * (n - 1), kExact));
    // A node is inner (two children: 3 halves each way) in one tree at most and a leaf (1 half) in the other: 2 S.
    REQUIRE(busiest_nic(schedule, group) <= 2.0 + kExact);
    if (n >= 4) REQUIRE_THAT(busiest_nic(schedule, group), WithinRel(2.0, kExact));
  }
}

TEST_CASE("inside nodes the trees are chains from and to the leader", "[plan][collective]") {
  // 4 nodes of 8: every rank but the leaders adds one edge per tree: 2 trees x 31 edges x 2 ways x 1/2 in all. A rank
  // in the middle of a chain has an edge to either side in both trees, both ways: 2 x 2 x 1/2 = 2 S out and in.
  const GroupShape group = group_of(4, 8);
  const auto schedule = all_reduce(CollectiveAlgorithm::DoubleBinaryTree, group);
  REQUIRE_THAT(total_bytes(schedule), WithinRel(62.0, kExact));
  REQUIRE_THAT(busiest_nic(schedule, group), WithinRel(2.0, kExact));
}

TEST_CASE("halving-doubling takes 2 log2 n rounds of which each sends half as much", "[plan][collective]") {
  for (const int n : {2, 4, 8, 16, 32, 64}) {
    // 1/2 + 1/4 + ... + 1/n = (n-1)/n, there and back.
    int levels = 0;
    while ((1 << levels) < n) ++levels;
    const auto schedule = all_reduce(CollectiveAlgorithm::HalvingDoubling, group_of(n, 1));
    REQUIRE(schedule.pipelines.size() == static_cast<std::size_t>(2 * levels));
    REQUIRE_THAT(busiest_rank(schedule), WithinRel(2.0 * (n - 1) / n, kExact));
    REQUIRE_THAT(total_bytes(schedule), WithinRel(2.0 * (n - 1), kExact));
  }
}

TEST_CASE("halving-doubling folds the ranks beyond a power of two in and out", "[plan][collective]") {
  for (const int n : {3, 5, 6, 7, 12, 48}) {
    // c = largest power of two: n-c ranks send S first and receive S last; the core moves 2(c-1) S in all.
    int core = 1;
    int levels = 0;
    for (; core * 2 <= n; core *= 2) ++levels;
    const auto schedule = all_reduce(CollectiveAlgorithm::HalvingDoubling, group_of(n, 1));
    REQUIRE(schedule.pipelines.size() == static_cast<std::size_t>(2 * levels + 2));
    REQUIRE_THAT(total_bytes(schedule), WithinRel(2.0 * (core - 1) + 2.0 * (n - core), kExact));
    REQUIRE_THAT(busiest_rank(schedule), WithinRel(2.0 * (core - 1) / core + 1.0, kExact));
  }
}

TEST_CASE("halving-doubling sends the far halves of all ranks of a node over its NIC", "[plan][collective]") {
  // 4 nodes of 8 ranks: distances 16 and 8 leave the node, 1/2 + 1/4 of S there and back for each of the 8 ranks:
  // 2 x 8 x 3/4 = 2 g S (N-1)/N = 12.
  const GroupShape group = group_of(4, 8);
  REQUIRE_THAT(busiest_nic(all_reduce(CollectiveAlgorithm::HalvingDoubling, group), group), WithinRel(12.0, kExact));
}

TEST_CASE("hierarchical all-reduce sends 2(N-1)/N payloads over a NIC", "[plan][collective]") {
  // 4 nodes of 8. Inside: 7 rounds of 1/8, twice: 2 x 7/8. Between nodes each local rank runs a ring with 1/8 of the
  // payload: 2 x 3/4 x 1/8 per rank, 8 ranks per NIC.
  const GroupShape group = group_of(4, 8);
  const auto schedule = all_reduce(CollectiveAlgorithm::Hierarchical, group);
  REQUIRE_THAT(busiest_nic(schedule, group), WithinRel(1.5, kExact));
  REQUIRE_THAT(busiest_rank(schedule), WithinRel(2.0 * 7 / 8 + 2.0 * 3 / 4 / 8, kExact));
  int inter = 0;
  for (const Hop& hop : schedule.hops) {
    const bool leaves = group.node_of(hop.from) != group.node_of(hop.to);
    REQUIRE(hop.rounds == (leaves ? 2 * (4 - 1) : 8 - 1));
    inter += leaves ? 1 : 0;
  }
  REQUIRE(inter == 4 * 8);
}

TEST_CASE("a chain moves the payload up and down every edge", "[plan][collective]") {
  // 5 ranks: 4 edges, S each way. A rank in the middle sends S up and S down: 2 S; the ends send S.
  const auto schedule = all_reduce(CollectiveAlgorithm::BroadcastReduce, group_of(5, 1), 3);
  REQUIRE_THAT(total_bytes(schedule), WithinRel(8.0, kExact));
  REQUIRE_THAT(busiest_rank(schedule), WithinRel(2.0, kExact));
  for (const Hop& hop : schedule.hops) REQUIRE(hop.rounds == 3);
}

TEST_CASE("one rank needs no hops", "[plan][collective]") {
  for (const auto algorithm :
       {CollectiveAlgorithm::Ring, CollectiveAlgorithm::DoubleBinaryTree, CollectiveAlgorithm::HalvingDoubling,
        CollectiveAlgorithm::Hierarchical, CollectiveAlgorithm::BroadcastReduce})
    REQUIRE(all_reduce(algorithm, group_of(1, 1)).hops.empty());
}

TEST_CASE("pieces of a pipeline are halved while they are few for its depth", "[plan][collective]") {
  constexpr double kMiB = 1024.0 * 1024.0;
  const auto tree = CollectiveAlgorithm::DoubleBinaryTree;
  // 8 nodes: depth 3. 64 MiB: 32 MiB per tree / 512 KiB = 64 >= 24 pieces, so 512 KiB stays.
  CHECK(pipeline_chunks(tree, group_of(8, 1), 64 * kMiB) == 64);
  // 4 MiB: 2 MiB per tree / 512 KiB = 4, /256 KiB = 8, both below 24; 128 KiB = 16 pieces is the least of the first
  // rule and not below 4 x 3.
  CHECK(pipeline_chunks(tree, group_of(8, 1), 4 * kMiB) == 16);
  // 256 KiB: 128 KiB per tree: 1 piece of 128 KiB < 12 gives 64 KiB: 2 pieces < 3 gives 32 KiB: 4 pieces.
  CHECK(pipeline_chunks(tree, group_of(8, 1), 0.25 * kMiB) == 4);
  CHECK(pipeline_chunks(tree, group_of(8, 1), 4096.0) == 1);
  // A chain cuts the whole payload in 512 KiB; 512 pieces are the most.
  CHECK(pipeline_chunks(CollectiveAlgorithm::BroadcastReduce, group_of(8, 1), 4 * kMiB) == 8);
  CHECK(pipeline_chunks(CollectiveAlgorithm::BroadcastReduce, group_of(8, 1), 1024 * kMiB) == 512);
  CHECK(pipeline_chunks(CollectiveAlgorithm::Ring, group_of(8, 1), 4 * kMiB) == 1);
}

TEST_CASE("automatic choice: tree for small messages over many nodes, ring for large ones", "[plan][collective]") {
  LinkRates rates;
  rates.alpha_inter = Seconds{10e-6};
  rates.rate_inter = BytesPerSecond{1e9};
  const auto chosen = [&](CollectiveAlgorithm asked, const GroupShape& group, double bytes) {
    return choose(CollectivePrimitive::AllReduce, asked, group, bytes, {{"", rates}}).algorithm;
  };
  // 64 nodes. Ring: 126 latencies, 1.26 ms, tree: 12, 0.12 ms: a small message takes the tree. 1 GB: the ring moves
  // 2 x 63/64 = 1.969 S, the tree 2 S and its first messages up and down: the ring wins by 0.03 s.
  const GroupShape group = group_of(64, 1);
  CHECK(chosen(CollectiveAlgorithm::Auto, group, 4096.0) == CollectiveAlgorithm::DoubleBinaryTree);
  CHECK(chosen(CollectiveAlgorithm::Auto, group, 1e9) == CollectiveAlgorithm::Ring);
  CHECK(chosen(CollectiveAlgorithm::Auto, group_of(1, 8), 4096.0) == CollectiveAlgorithm::Ring);
  CHECK(chosen(CollectiveAlgorithm::HalvingDoubling, group, 1e9) == CollectiveAlgorithm::HalvingDoubling);
}

TEST_CASE("the fastest protocol is chosen by message size", "[plan][collective]") {
  // 2 ranks on a node, ring: 2 rounds of S/2. `flags`: 1 us a round and 1 GB/s, the longer of the two; `plain`: 5 us
  // and 2 GB/s, one after the other.
  //   S = 1 KB:    flags 2 max(1, 0.5) us = 2 us;      plain 2 (5 + 0.25) us = 10.5 us
  //   S = 4 KB:    flags 2 max(1, 2) us = 4 us;        plain 2 (5 + 1) us = 12 us
  //   S = 100 KB:  flags 2 max(1, 50) us = 100 us;     plain 2 (5 + 25) us = 60 us
  const std::vector<ProtocolRates> protocols{
      {"flags", {.alpha_intra = Seconds{1e-6}, .rate_intra = BytesPerSecond{1e9}, .overlap = true}},
      {"plain", {.alpha_intra = Seconds{5e-6}, .rate_intra = BytesPerSecond{2e9}}}};
  const auto chosen = [&](double bytes) {
    return choose(CollectivePrimitive::AllReduce, CollectiveAlgorithm::Auto, group_of(1, 2), bytes, protocols);
  };
  CHECK(chosen(1e3).protocol == "flags");
  CHECK_THAT(chosen(1e3).time.value(), WithinRel(2e-6, 1e-12));
  CHECK_THAT(chosen(4e3).time.value(), WithinRel(4e-6, 1e-12));
  CHECK(chosen(1e5).protocol == "plain");
  CHECK_THAT(chosen(1e5).time.value(), WithinRel(60e-6, 1e-12));
}
