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
  return schedule_of({CollectivePrimitive::AllReduce, algorithm}, group, chunks);
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
    const auto scatter = schedule_of({CollectivePrimitive::ReduceScatter}, group, 1);
    const auto gather = schedule_of({CollectivePrimitive::AllGather}, group, 1);
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

TEST_CASE("halving-doubling over any number of ranks works in binary blocks", "[plan][collective]") {
  struct Case {
    int ranks;
    std::vector<int> blocks;
    double busiest;  ///< payloads that one rank sends, or receives
  };
  // 3 = 2 + 1: ranks 0 and 1 exchange 1/2 twice, and rank 2 sends each of them 1/2 and gets it back: 2 x 1/2 + 1/2 in a
  // block of two. A rank of a block between two others has 2 (b-1)/b inside it, 1/b up and 1/b down: 2.
  for (const Case& now : {Case{3, {2, 1}, 1.5},
                          {5, {4, 1}, 1.75},
                          {6, {4, 2}, 1.75},
                          {7, {4, 2, 1}, 2.0},
                          {12, {8, 4}, 1.875},
                          {48, {32, 16}, 1.96875}}) {
    INFO(now.ranks << " ranks");
    const auto schedule = all_reduce(CollectiveAlgorithm::HalvingDoubling, group_of(now.ranks, 1));
    // log2 b exchanges there and back in every block, and one step to the next larger block and one back.
    std::size_t steps = 2 * (now.blocks.size() - 1);
    for (int block : now.blocks)
      for (; block > 1; block /= 2) steps += 2;
    CHECK(schedule.pipelines.size() == steps);
    // Inside a block of b 2 (b-1) S, between blocks S up and S down: 2 (P-1) S in all.
    CHECK_THAT(total_bytes(schedule), WithinRel(2.0 * (now.ranks - 1), kExact));
    CHECK_THAT(busiest_rank(schedule), WithinRel(now.busiest, kExact));
  }
}

TEST_CASE("a smaller block hands its sums to the next larger one in pieces of that one's size", "[plan][collective]") {
  // 7 = {0..3} + {4, 5} + {6}: rank 6 sends 1/2 to 4 and 5; rank 4 sends 1/4 to 0 and 2, rank 5 to 1 and 3.
  const auto schedule = all_reduce(CollectiveAlgorithm::HalvingDoubling, group_of(7, 1));
  std::map<std::pair<int, int>, double> across;
  const auto block = [](int rank) { return rank < 4 ? 0 : rank < 6 ? 1 : 2; };
  for (const Hop& hop : schedule.hops)
    if (block(hop.from) != block(hop.to)) across[{hop.from, hop.to}] += hop.bytes;
  const std::map<std::pair<int, int>, double> expected{
      {{6, 4}, 0.5},  {{6, 5}, 0.5},  {{4, 6}, 0.5},  {{5, 6}, 0.5},   //
      {{4, 0}, 0.25}, {{4, 2}, 0.25}, {{5, 1}, 0.25}, {{5, 3}, 0.25},  //
      {{0, 4}, 0.25}, {{2, 4}, 0.25}, {{1, 5}, 0.25}, {{3, 5}, 0.25}};
  CHECK(across == expected);
}

TEST_CASE("halving-doubling keeps its large messages inside nodes", "[plan][collective]") {
  // 4 nodes of 8 ranks: distances 1, 2 and 4 stay inside; 8 and 16 leave the node with 1/16 + 1/32 of S there and back
  // for each of the 8 ranks: 2 x 8 x 3/32 = 2 S (N-1)/N = 1.5.
  const GroupShape group = group_of(4, 8);
  REQUIRE_THAT(busiest_nic(all_reduce(CollectiveAlgorithm::HalvingDoubling, group), group), WithinRel(1.5, kExact));
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

TEST_CASE("a broadcast flows along the ring from its root, a reduce to it", "[plan][collective]") {
  // 2 nodes of 3 ranks. From root 4: 4-5-0-1-2-3, S on each of 5 hops; between nodes 5-0 and 2-3. To root 4 the ring is
  // cut behind it: 5-0-1-2-3-4.
  const GroupShape group = group_of(2, 3);
  const auto chain = [&](CollectivePrimitive primitive) {
    const auto schedule = schedule_of({.primitive = primitive, .root = 4}, group, 7);
    REQUIRE(schedule.pipelines.size() == 1);
    CHECK(schedule.pipelines.front().chain);
    CHECK_THAT(total_bytes(schedule), WithinRel(5.0, kExact));
    CHECK_THAT(busiest_rank(schedule), WithinRel(1.0, kExact));
    CHECK_THAT(busiest_nic(schedule, group), WithinRel(1.0, kExact));
    std::vector<int> order{schedule.hops.front().from};
    for (std::size_t i = 0; i < schedule.hops.size(); ++i) {
      CHECK(schedule.hops[i].from == order.back());
      CHECK(schedule.hops[i].rounds == 7);
      // A message goes on once the hop before has delivered it.
      CHECK(schedule.hops[i].needs == (i == 0 ? std::vector<int>{} : std::vector{static_cast<int>(i) - 1}));
      CHECK(schedule.hops[i].lag == 0);
      order.push_back(schedule.hops[i].to);
    }
    return order;
  };
  CHECK(chain(CollectivePrimitive::Broadcast) == std::vector{4, 5, 0, 1, 2, 3});
  CHECK(chain(CollectivePrimitive::Reduce) == std::vector{5, 0, 1, 2, 3, 4});
}

TEST_CASE("an all-to-all sends every rank its part at once", "[plan][collective]") {
  // P ranks: P (P-1) hops of S/P. A rank sends (P-1)/P; of a node of g, g ranks send P-g parts each over the NIC.
  for (const int g : {1, 2, 5}) {
    const GroupShape group = group_of(3, g);
    const int ranks = 3 * g;
    const auto schedule = schedule_of({.primitive = CollectivePrimitive::AllToAll}, group, 1);
    REQUIRE(schedule.hops.size() == static_cast<std::size_t>(ranks * (ranks - 1)));
    for (const Hop& hop : schedule.hops) REQUIRE(hop.rounds == 1);
    CHECK_THAT(busiest_rank(schedule), WithinRel((ranks - 1.0) / ranks, kExact));
    CHECK_THAT(busiest_nic(schedule, group), WithinRel(1.0 * g * (ranks - g) / ranks, kExact));
  }
}

TEST_CASE("send/receive is one hop from the root to the other rank", "[plan][collective]") {
  for (const int root : {0, 1}) {
    const auto schedule = schedule_of({.primitive = CollectivePrimitive::SendReceive, .root = root}, group_of(2, 1), 3);
    REQUIRE(schedule.hops.size() == 1);
    CHECK(schedule.hops.front().from == root);
    CHECK(schedule.hops.front().to == 1 - root);
    CHECK_THAT(schedule.hops.front().bytes, WithinRel(1.0, kExact));
  }
}

TEST_CASE("one rank needs no hops", "[plan][collective]") {
  for (const auto algorithm :
       {CollectiveAlgorithm::Ring, CollectiveAlgorithm::DoubleBinaryTree, CollectiveAlgorithm::HalvingDoubling,
        CollectiveAlgorithm::Hierarchical, CollectiveAlgorithm::BroadcastReduce})
    REQUIRE(all_reduce(algorithm, group_of(1, 1)).hops.empty());
}

TEST_CASE("pieces of a pipeline are halved while they are few for its depth", "[plan][collective]") {
  constexpr double kMiB = 1024.0 * 1024.0;
  const CollectiveKind tree{.algorithm = CollectiveAlgorithm::DoubleBinaryTree};
  const CollectiveKind chain{.algorithm = CollectiveAlgorithm::BroadcastReduce};
  // 8 nodes: depth 3. 64 MiB: 32 MiB per tree / 512 KiB = 64 >= 24 pieces, so 512 KiB stays.
  CHECK(pipeline_chunks(tree, group_of(8, 1), 64 * kMiB) == 64);
  // 4 MiB: 2 MiB per tree / 512 KiB = 4, /256 KiB = 8, both below 24; 128 KiB = 16 pieces is the least of the first
  // rule and not below 4 x 3.
  CHECK(pipeline_chunks(tree, group_of(8, 1), 4 * kMiB) == 16);
  // 256 KiB: 128 KiB per tree: 1 piece of 128 KiB < 12 gives 64 KiB: 2 pieces < 3 gives 32 KiB: 4 pieces.
  CHECK(pipeline_chunks(tree, group_of(8, 1), 0.25 * kMiB) == 4);
  CHECK(pipeline_chunks(tree, group_of(8, 1), 4096.0) == 1);
  // A chain cuts the whole payload in 512 KiB; 512 pieces are the most.
  CHECK(pipeline_chunks(chain, group_of(8, 1), 4 * kMiB) == 8);
  CHECK(pipeline_chunks(chain, group_of(8, 1), 1024 * kMiB) == 512);
  CHECK(pipeline_chunks({}, group_of(8, 1), 4 * kMiB) == 1);
  // A chain to or from one root likewise; parts of an all-to-all travel whole.
  CHECK(pipeline_chunks({CollectivePrimitive::Broadcast}, group_of(8, 1), 4 * kMiB) == 8);
  CHECK(pipeline_chunks({CollectivePrimitive::Reduce}, group_of(8, 1), 4 * kMiB + 1) == 9);
  CHECK(pipeline_chunks({CollectivePrimitive::SendReceive}, group_of(2, 1), 1.0) == 1);
  CHECK(pipeline_chunks({CollectivePrimitive::AllToAll}, group_of(8, 1), 4 * kMiB) == 1);
}

TEST_CASE("auto is NCCL's choice, best the fastest", "[plan][collective]") {
  LinkRates rates;
  rates.alpha_inter = Seconds{10e-6};
  rates.rate_inter = rates.rate_wire = rates.rate_rank = rates.rate_node = BytesPerSecond{1e9};
  rates.rate_tree = BytesPerSecond{0.5e9};
  const NcclView view{.ring = {1, 1.2, 1.2}, .tree = {1, 1.2, 1.2}};
  GroupCosts costs{group_of(64, 1), {{"", rates}}, view};
  const auto chosen = [&](CollectiveAlgorithm asked, double bytes) {
    return choose(CollectivePrimitive::AllReduce, asked, costs, bytes).algorithm;
  };
  // 64 nodes of one GPU. NCCL: a ring has 126 hops of 5 us and more, a tree 12; from some size on the ring's 1.2 x
  // 64/126 wins over the tree's 1.2 x 0.92 x 0.85 / 2.
  CHECK(chosen(CollectiveAlgorithm::Auto, 4096.0) == CollectiveAlgorithm::DoubleBinaryTree);
  CHECK(chosen(CollectiveAlgorithm::Auto, 1e9) == CollectiveAlgorithm::Ring);
  // Halving-doubling: 12 rounds, 120 us, and 2 x 63/64 S, as the ring moves with 126 rounds.
  CHECK(chosen(CollectiveAlgorithm::Best, 1e9) == CollectiveAlgorithm::HalvingDoubling);
  CHECK(chosen(CollectiveAlgorithm::HalvingDoubling, 1e9) == CollectiveAlgorithm::HalvingDoubling);
  for (const double bytes : {4096.0, 1e6, 1e9})
    for (const auto algorithm : {CollectiveAlgorithm::Ring, CollectiveAlgorithm::DoubleBinaryTree,
                                 CollectiveAlgorithm::HalvingDoubling, CollectiveAlgorithm::BroadcastReduce})
      CHECK(choose(CollectivePrimitive::AllReduce, CollectiveAlgorithm::Best, costs, bytes).time <=
            choose(CollectivePrimitive::AllReduce, algorithm, costs, bytes).time);
  // A cluster whose library is not NCCL says what its own choice is.
  costs.library = CollectiveAlgorithm::Ring;
  CHECK(chosen(CollectiveAlgorithm::Auto, 4096.0) == CollectiveAlgorithm::Ring);
  // Only all-reduce has a choice.
  for (const auto asked : {CollectiveAlgorithm::Auto, CollectiveAlgorithm::Best})
    CHECK(choose(CollectivePrimitive::AllGather, asked, costs, 4096.0).algorithm == CollectiveAlgorithm::Ring);
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
  const GroupCosts costs{group_of(1, 2), protocols, {}};
  const auto chosen = [&](double bytes) {
    return choose(CollectivePrimitive::AllReduce, CollectiveAlgorithm::Ring, costs, bytes);
  };
  CHECK(chosen(1e3).protocol == "flags");
  CHECK_THAT(chosen(1e3).time.value(), WithinRel(2e-6, 1e-12));
  CHECK_THAT(chosen(4e3).time.value(), WithinRel(4e-6, 1e-12));
  CHECK(chosen(1e5).protocol == "plain");
  CHECK_THAT(chosen(1e5).time.value(), WithinRel(60e-6, 1e-12));
}
