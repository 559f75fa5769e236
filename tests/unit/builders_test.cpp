#include "strategies/builders.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "base/random.hpp"
#include "strategies/families.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/small_problems.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

const PsSynchronizer& ps_of(const Strategy& strategy, VariableId id, std::size_t shard = 0) {
  return std::get<PsSynchronizer>(strategy.variables.at(id).shards.at(shard).synchronizer);
}

int group_of(const Strategy& strategy, VariableId id, std::size_t shard = 0) {
  return std::get<AllReduceSynchronizer>(strategy.variables.at(id).shards.at(shard).synchronizer).group;
}

std::vector<int> server_nodes(const Strategy& strategy, VariableId id) {
  std::vector<int> nodes;
  for (std::size_t k = 0; k < strategy.variables.at(id).shards.size(); ++k)
    nodes.push_back(ps_of(strategy, id, k).server.node);
  return nodes;
}

std::vector<std::int64_t> elements_of(const Strategy& strategy, VariableId id) {
  std::vector<std::int64_t> elements;
  for (const auto& shard : strategy.variables.at(id).shards) elements.push_back(shard.elements);
  return elements;
}

/// Share of all elements on each node's host.
std::map<int, double> shares(const Strategy& strategy) {
  std::map<int, double> loads;
  double total = 0.0;
  for (VariableId id = 0; id < strategy.variables.size(); ++id) {
    for (std::size_t k = 0; k < strategy.variables[id].shards.size(); ++k) {
      const auto elements = static_cast<double>(strategy.variables[id].shards[k].elements);
      loads[ps_of(strategy, id, k).server.node] += elements;
      total += elements;
    }
  }
  for (auto& [node, load] : loads) load /= total;
  return loads;
}

std::string error_of(const std::string& builder, const BuildRequest& request) {
  try {
    (void)build_strategy(builder, request);
  } catch (const std::exception& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("exactly the published builders are known", "[strategies]") {
  CHECK(known_builders() == std::vector<std::string>{"all-reduce", "bsp", "byteps", "bytescheduler", "ddp", "fsdp",
                                                     "horovod", "mg-wfbp", "p3", "parallax", "partitioned-all-reduce",
                                                     "partitioned-ps", "poseidon", "ps", "ps-load-balancing",
                                                     "random-axis-partition-all-reduce", "tictac",
                                                     "uneven-partitioned-ps", "wfbp"});
  for (const auto& name : known_builders())
    CHECK(describe_builder(name).find("per_operation_cost=0s") != std::string::npos);
}

TEST_CASE("ps puts everything on the first host", "[strategies]") {
  Model model = chain({{4, 4}, {4}});
  add_tensor(model, "table", {100, 4}, LayerKind::Embedding, true);
  const Cluster cluster = make_cluster(2, 2);
  const Strategy plain = build_strategy("ps", request_for(model, cluster, 4));
  for (VariableId id = 0; id < 3; ++id) CHECK(ps_of(plain, id).server == host(0));
  CHECK_FALSE(ps_of(plain, 0).local_replication);  // AutoDist's local_proxy_variable is false by default
  // session.run k+1 starts when run k has returned, and reads the variables itself.
  CHECK(plain.graph.gate == Gate::All);
  CHECK(plain.graph.pull_at_step_start);
  CHECK(plain.graph.shared_process);  // AutoDist starts one tf.Server per host
  CHECK(plain.graph.overlap == Overlap::WaitFree);
  CHECK(plain.graph.update_at == UpdateAt::Server);
  CHECK(plain.graph.workers == 4);

  const Strategy chosen =
      build_strategy("ps", request_for(model, cluster, 4, {{"local_replication", "true"}, {"staleness", "2"}}));
  CHECK(ps_of(chosen, 0).local_replication);
  CHECK_FALSE(ps_of(chosen, 2).local_replication);  // no proxy of a sparse variable
  CHECK(ps_of(chosen, 1).staleness == 2);
}

TEST_CASE("load balancing takes the server with the fewest bytes, the first among equals", "[strategies]") {
  // Elements 40, 10, 20, 30, 4 on two servers:
  //   a 40 -> 0 (0:0 1:0)     b 10 -> 1 (40:0)    c 20 -> 1 (40:10)
  //   d 30 -> 1 (40:30)       e  4 -> 0 (40:60)
  const Model model = chain({{40}, {10}, {20}, {30}, {4}});
  const Strategy strategy = build_strategy("ps-load-balancing", request_for(model, make_cluster(2, 1), 2));
  std::vector<int> nodes;
  for (VariableId id = 0; id < 5; ++id) nodes.push_back(ps_of(strategy, id).server.node);
  CHECK(nodes == std::vector<int>{0, 1, 1, 1, 0});
}

TEST_CASE("AutoDist's servers are all hosts with workers and all without GPUs", "[strategies]") {
  // Nodes 0 ... 3 have a GPU, 4 and 5 have none; two workers sit on nodes 0 and 1.
  const Model model = chain({{1}, {1}, {1}, {1}, {1}});
  const Strategy strategy = build_strategy("ps-load-balancing", request_for(model, make_cluster(4, 1, 2), 2));
  std::vector<int> nodes;
  for (VariableId id = 0; id < 5; ++id) nodes.push_back(ps_of(strategy, id).server.node);
  CHECK(nodes == std::vector<int>{0, 1, 4, 5, 0});
}

TEST_CASE("partitioned-ps splits axis 0 by its smallest divisor", "[strategies]") {
  // VGG16 fc6 has 25088 rows: two shards. BERT's 30522 rows: two of 15261. 21841 is prime: one row per shard.
  Model model = chain({{25088, 4096}, {21841}, {1, 7}, {}});
  add_tensor(model, "words", {30522, 768}, LayerKind::Embedding, true);
  const Strategy strategy = build_strategy("partitioned-ps", request_for(model, make_cluster(4, 1), 4));
  CHECK(elements_of(strategy, 0) == std::vector<std::int64_t>(2, 12544LL * 4096));
  CHECK(strategy.variables[0].partition_axis == 0);
  CHECK(elements_of(strategy, 1) == std::vector<std::int64_t>(21841, 1));
  CHECK(strategy.variables[2].partition_axis == kWholeVariable);    // length 1
  CHECK(elements_of(strategy, 3) == std::vector<std::int64_t>{1});  // a scalar
  CHECK(elements_of(strategy, 4) == std::vector<std::int64_t>(2, 15261LL * 768));
}

TEST_CASE("partitioned-ps sorts the servers once per variable and deals in turn", "[strategies]") {
  // Three servers. a: 2 rows of 6 -> servers 0, 1 with 6 each. b: 5 rows of 1, order 2, 0, 1 -> 2 0 1 2 0, so
  // loads are 8, 7, 2. c: 2 rows -> servers 2, 1.
  const Model model = chain({{2, 6}, {5}, {2}});
  const Strategy strategy = build_strategy("partitioned-ps", request_for(model, make_cluster(3, 1), 3));
  CHECK(server_nodes(strategy, 0) == std::vector<int>{0, 1});
  CHECK(server_nodes(strategy, 1) == std::vector<int>{2, 0, 1, 2, 0});
  CHECK(server_nodes(strategy, 2) == std::vector<int>{2, 1});
}

TEST_CASE("a classifier of 21841 classes of 4096 values gives 21841 shards", "[strategies]") {
  const Model model = chain({{21841, 4096}});
  const Strategy strategy = build_strategy("partitioned-ps", request_for(model, make_cluster(32, 1), 32));
  REQUIRE(strategy.variables[0].shards.size() == 21841);
  // 21841 = 32 x 682 + 17: the first 17 servers hold 683 rows.
  const auto loads = shares(strategy);
  CHECK_THAT(loads.at(16) * 21841, WithinRel(683.0, 1e-12));
  CHECK_THAT(loads.at(17) * 21841, WithinRel(682.0, 1e-12));
}

TEST_CASE("uneven-partitioned-ps takes the smallest number that does not divide", "[strategies]") {
  // 25088 = 2^9 x 7^2: 3 shards of 8363, 8363, 8362 rows. 30522 = 2 x 3 x 5087: 4 shards of 7631, 7631, 7630, 7630.
  // 2: no number between 2 and 2, so 2 shards. 7: 2 shards of 4 and 3.
  const Model model = chain({{25088}, {30522}, {2}, {7}});
  const Strategy strategy = build_strategy("uneven-partitioned-ps", request_for(model, make_cluster(2, 1), 2));
  CHECK(elements_of(strategy, 0) == std::vector<std::int64_t>{8363, 8363, 8362});
  CHECK(elements_of(strategy, 1) == std::vector<std::int64_t>{7631, 7631, 7630, 7630});
  CHECK(elements_of(strategy, 2) == std::vector<std::int64_t>{1, 1});
  CHECK(elements_of(strategy, 3) == std::vector<std::int64_t>{4, 3});
}

TEST_CASE("all-reduce groups by position, partitioned-all-reduce by a running shard counter", "[strategies]") {
  const Model model = chain({{4}, {3}, {2}, {1}, {4}});
  const Cluster cluster = make_cluster(2, 1);
  const Strategy plain = build_strategy("all-reduce", request_for(model, cluster, 2, {{"chunk", "2"}}));
  std::vector<int> groups;
  for (VariableId id = 0; id < 5; ++id) groups.push_back(group_of(plain, id));
  CHECK(groups == std::vector<int>{0, 0, 1, 1, 2});
  CHECK(plain.graph.fusion.kind == FusionKind::Groups);
  CHECK(plain.graph.serial_collectives);

  // Shards: a 2, b 3, c 2, d 1, e 2 -> counter 0 1 | 2 3 4 | 5 6 | 7 | 8 9, divided by 4.
  const Strategy split = build_strategy("partitioned-all-reduce", request_for(model, cluster, 2, {{"chunk", "4"}}));
  groups.clear();
  for (VariableId id = 0; id < 5; ++id) {
    for (std::size_t k = 0; k < split.variables[id].shards.size(); ++k) groups.push_back(group_of(split, id, k));
  }
  CHECK(groups == std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2});

  const Strategy ring = build_strategy("all-reduce", request_for(model, cluster, 2, {{"spec", "ring"}}));
  CHECK_FALSE(ring.graph.serial_collectives);
  CHECK(std::get<AllReduceSynchronizer>(ring.variables[0].shards[0].synchronizer).algorithm ==
        CollectiveAlgorithm::Ring);
}

TEST_CASE("random-axis-partition-all-reduce depends on the seed only", "[strategies]") {
  std::vector<std::vector<std::int64_t>> shapes(20, {6, 1, 10});
  Model model = chain(shapes);
  add_tensor(model, "table", {9, 10}, LayerKind::Embedding, true);
  const Cluster cluster = make_cluster(2, 1);
  BuildRequest request = request_for(model, cluster, 2);
  const Strategy once = build_strategy("random-axis-partition-all-reduce", request);
  CHECK(once == build_strategy("random-axis-partition-all-reduce", request));
  request.seed = 2;
  CHECK_FALSE(once == build_strategy("random-axis-partition-all-reduce", request));
  std::map<int, int> drawn;
  for (VariableId id = 0; id < 20; ++id) ++drawn[once.variables[id].partition_axis];
  CHECK(drawn.size() == 2);  // axes 0 and 2; axis 1 has length 1
  CHECK(drawn.contains(0));
  CHECK(drawn.contains(2));
  CHECK(once.variables[20].partition_axis == 0);
  CHECK(elements_of(once, 20) == std::vector<std::int64_t>(3, 30));
}

TEST_CASE("the generator is the standard's on every platform", "[strategies]") {
  // The 10000th value of a default-constructed mt19937_64 (seed 5489) is 9981545732273789042 by the standard.
  Random random(5489);
  for (int i = 0; i < 9999; ++i) CHECK(random.below(1) == 0);
  CHECK(random.below(1000) == 42);
  CHECK(Random(7).unit() < 1.0);
}

TEST_CASE("parallax: dense variables in groups that count all positions, sparse ones on servers", "[strategies]") {
  Model model("mixed", 32, "sentence");
  add_tensor(model, "a", {4});
  add_tensor(model, "t", {100, 4}, LayerKind::Embedding, true);
  add_tensor(model, "b", {4});
  add_tensor(model, "u", {10, 4}, LayerKind::Embedding, true);
  const Strategy strategy = build_strategy("parallax", request_for(model, make_cluster(2, 1), 2, {{"chunk", "2"}}));
  CHECK(group_of(strategy, 0) == 0);
  CHECK(group_of(strategy, 2) == 1);
  CHECK(ps_of(strategy, 1).server == host(0));
  CHECK(ps_of(strategy, 3).server == host(1));
  CHECK_FALSE(ps_of(strategy, 1).local_replication);
}

TEST_CASE("ddp and horovod merge by their own rules and wait for everything", "[strategies]") {
  const Model model = chain({{4}, {4}});
  const Cluster cluster = make_cluster(1, 4);
  const Strategy ddp = build_strategy("ddp", request_for(model, cluster, 4, {{"bucket", "10MiB"}}));
  CHECK(ddp.graph.fusion.kind == FusionKind::Buckets);
  CHECK(ddp.graph.fusion.first_limit == Bytes{1 << 20});
  CHECK(ddp.graph.fusion.limit == Bytes{10 << 20});
  CHECK(ddp.graph.fusion.copies);
  CHECK(ddp.graph.gate == Gate::All);
  CHECK(ddp.graph.serial_collectives);
  const Strategy horovod = build_strategy("horovod", request_for(model, cluster, 4));
  CHECK(horovod.graph.fusion.kind == FusionKind::Cycle);
  CHECK(horovod.graph.fusion.threshold == Bytes{64 << 20});
  CHECK(horovod.graph.fusion.cycle == Seconds{5e-3});
  CHECK(horovod.graph.fusion.copies);
  const Strategy fp16 =
      build_strategy("ddp", request_for(model, cluster, 4, {{"compressor", "fp16"}, {"algorithm", "ring"}}));
  CHECK(fp16.variables[1].compressor == Compressor::Fp16);
  CHECK(fp16.graph.algorithm == CollectiveAlgorithm::Ring);
}

TEST_CASE("bsp, wfbp and mg-wfbp differ in overlap and merging alone", "[strategies]") {
  const Model model = chain({{40}, {10}, {20}});
  const Cluster cluster = make_cluster(2, 1);
  const Strategy bsp = build_strategy("bsp", request_for(model, cluster, 2));
  CHECK(bsp.graph.overlap == Overlap::None);
  CHECK(bsp.graph.fusion.kind == FusionKind::None);
  const Strategy on_servers = build_strategy("bsp", request_for(model, cluster, 2, {{"sync", "ps"}}));
  CHECK(ps_of(on_servers, 2).server == host(1));
  CHECK(on_servers.graph.overlap == Overlap::None);
  const Strategy wfbp = build_strategy("wfbp", request_for(model, cluster, 2));
  CHECK(wfbp.graph.overlap == Overlap::WaitFree);
  CHECK(wfbp.graph.fusion.kind == FusionKind::None);
  const Strategy merged = build_strategy("wfbp", request_for(model, cluster, 2, {{"bucket", "2MiB"}}));
  CHECK(merged.graph.fusion.kind == FusionKind::Buckets);
  CHECK(merged.graph.fusion.first_limit == merged.graph.fusion.limit);
  CHECK(build_strategy("mg-wfbp", request_for(model, cluster, 2)).graph.fusion.kind == FusionKind::MergedGradient);
}

TEST_CASE("sufficient factors win up to 2MN / (K (M+N)) machines", "[strategies]") {
  // K = 32 and P1 = P2 = P: 128.0, 220.07, 215.57 and 50.24.
  const auto last_win = [](std::int64_t m, std::int64_t n) {
    int p = 2;
    while (sufficient_factors_win(m, n, 32.0, p, p)) ++p;
    return p - 1;
  };
  CHECK(last_win(4096, 4096) == 128);
  CHECK(last_win(25088, 4096) == 220);
  CHECK(last_win(4096, 21841) == 215);
  CHECK(last_win(4096, 1000) == 50);
}

TEST_CASE("poseidon sends factors of dense matrices and shards the rest over the workers' hosts", "[strategies]") {
  Model model("small-vgg", 32, "image");
  add_tensor(model, "conv", {64, 64, 3, 3}, LayerKind::Conv);
  const VariableId fc = add_tensor(model, "fc", {4096, 4096});
  Variable bias;
  bias.name = "fc/bias";
  bias.shape = {4096};
  bias.layer = model.variable(fc).layer;
  model.add_variable(bias);
  const Cluster cluster = make_cluster(8, 1);
  const Strategy hybrid = build_strategy("poseidon", request_for(model, cluster, 8));
  CHECK(std::holds_alternative<SfbSynchronizer>(hybrid.variables[fc].shards[0].synchronizer));
  CHECK(std::holds_alternative<PsSynchronizer>(hybrid.variables[0].shards[0].synchronizer));
  CHECK(std::holds_alternative<PsSynchronizer>(hybrid.variables[2].shards[0].synchronizer));
  CHECK(hybrid.graph.gate == Gate::All);

  // 4096 x 4096 floats are 64 MiB: 32 pairs of 2 MiB on 8 hosts.
  const Strategy servers =
      build_strategy("poseidon", request_for(model, cluster, 8, {{"hybrid", "false"}, {"overlap", "none"}}));
  CHECK(servers.variables[fc].shards.size() == 32);
  CHECK(servers.variables[fc].partition_axis == kFlatAxis);
  CHECK(servers.graph.overlap == Overlap::None);
  CHECK(shares(servers).size() == 8);

  // With 320 samples per worker factors are ten times larger: the crossover of 4096 x 4096 falls to 12 machines.
  const Cluster thirteen = make_cluster(13, 1);  // a request only refers to its cluster
  BuildRequest large = request_for(model, thirteen, 13);
  large.batch = 320;
  CHECK(std::holds_alternative<PsSynchronizer>(build_strategy("poseidon", large).variables[fc].shards[0].synchronizer));
}

TEST_CASE("byteps splits the load so that every NIC carries 2n(n-1)/(n^2+kn-2k) times the model", "[strategies]") {
  // One variable of 88 x 20 whole pieces (1,024,000 floats each): every share below is a whole number of pieces.
  const Model model = chain({{88LL * 20 * 1'024'000}});
  struct Case {
    int n;
    int k;
    double time;
  };
  for (const auto& c : {Case{4, 0, 1.5}, Case{4, 2, 1.2}, Case{4, 4, 1.0}, Case{8, 0, 1.75}, Case{8, 4, 112.0 / 88.0},
                        Case{8, 8, 1.0}}) {
    const Strategy strategy = build_strategy("byteps", request_for(model, make_cluster(c.n, 1, c.k), c.n));
    const auto loads = shares(strategy);
    for (int node = 0; node < c.n + c.k; ++node) {
      const double load = loads.contains(node) ? loads.at(node) : 0.0;
      // A CPU machine receives its share from n workers. A GPU machine receives its share from n-1 others and, as
      // a worker, everything that it does not serve itself.
      const double received = node < c.n ? (c.n - 1) * load + 1.0 - load : c.n * load;
      CAPTURE(c.n, c.k, node);
      CHECK_THAT(received, WithinAbs(c.time, 2e-3));
    }
  }
}

TEST_CASE("byteps cuts into pieces, orders by layer and updates on the workers", "[strategies]") {
  const Model model = chain({{10}, {2'500'000}});
  const Cluster cluster = make_cluster(2, 8, 1);
  const Strategy strategy = build_strategy("byteps", request_for(model, cluster, 16, {{"credit", "4"}}));
  // 4,096,000 B = 125 x 8 GPUs x 4096 B: no rounding; 1,024,000 floats per piece.
  CHECK(elements_of(strategy, 1) == std::vector<std::int64_t>{1'024'000, 1'024'000, 452'000});
  CHECK(strategy.variables[0].priority == 0);
  CHECK(strategy.variables[1].priority == 1);
  CHECK(strategy.graph.update_at == UpdateAt::Worker);
  CHECK(strategy.graph.gate == Gate::PerVariable);
  CHECK(strategy.graph.aggregate_on_gpu);
  CHECK(strategy.graph.scheduling.credit == Bytes{4 * 4'096'000});
  CHECK(strategy.graph.scheduling.credit_is_strict);
  // 3 GPUs: a unit is 12288 B, 4,096,000 / 12288 = 333.3, so 334 units = 4,104,192 B.
  const Strategy odd = build_strategy("byteps", request_for(model, make_cluster(2, 3), 6));
  CHECK(elements_of(odd, 1).front() == 4'104'192 / 4);
  CHECK(error_of("byteps", request_for(model, cluster, 16, {{"servers", "2"}})) ==
        "option 'servers' asks for 2 CPU machines, and cluster 'lab' has 1");
  // On one GPU machine nothing crosses the network.
  CHECK(shares(build_strategy("byteps", request_for(model, cluster, 8))).size() == 1);
}

TEST_CASE("p3 deals slices in turn, and the turn goes on from tensor to tensor", "[strategies]") {
  const Model model = chain({{100'000}, {50'000}, {1}});
  const Strategy strategy = build_strategy("p3", request_for(model, make_cluster(2, 1), 2));
  CHECK(elements_of(strategy, 0) == std::vector<std::int64_t>{40'000, 40'000, 20'000});
  CHECK(server_nodes(strategy, 0) == std::vector<int>{0, 1, 0});
  CHECK(server_nodes(strategy, 1) == std::vector<int>{1, 0});
  CHECK(server_nodes(strategy, 2) == std::vector<int>{1});
  CHECK(strategy.graph.scheduling.ordering == Ordering::Priority);
  CHECK(strategy.graph.scheduling.credit == Bytes{1});
  CHECK(strategy.graph.update_at == UpdateAt::Worker);
  CHECK(strategy.graph.gate == Gate::PerVariable);
}

TEST_CASE("bytescheduler counts in parameters", "[strategies]") {
  const Model model = chain({{10}, {2'500'000}});
  const Cluster cluster = make_cluster(2, 1, 1);
  const Strategy ps = build_strategy("bytescheduler", request_for(model, cluster, 2));
  CHECK(elements_of(ps, 1) == std::vector<std::int64_t>{1'000'000, 1'000'000, 500'000});
  CHECK(server_nodes(ps, 1) == std::vector<int>{2, 2, 2});  // the node without GPUs
  CHECK(ps.graph.scheduling.credit == Bytes{16'000'000});
  CHECK(ps.graph.scheduling.partition == Bytes{0});
  const Strategy all_reduce = build_strategy("bytescheduler", request_for(model, cluster, 2, {{"base", "all-reduce"}}));
  CHECK(all_reduce.graph.scheduling.partition == Bytes{32'000'000});
  CHECK(all_reduce.graph.scheduling.credit == Bytes{64'000'000});
  CHECK(all_reduce.variables[1].shards.size() == 1);
  CHECK(all_reduce.variables[1].priority == 1);
}

TEST_CASE("TIC ranks variables by the smallest set in which a layer needs them", "[strategies]") {
  // Layers and what they need, ancestors included:
  //   0: a          (one variable: does not count)
  //   1: a b        (reads 0)          size 2
  //   2: a c d      (reads 0)          size 3
  //   3: a b c d e  (reads 1 and 2)    size 5
  // M+: a 2, b 2, c 3, d 3, e 5.
  Model model("branches", 1, "image");
  const auto layer = [&](const std::string& name, const std::vector<LayerId>& inputs) {
    Layer l;
    l.name = name;
    return model.add_layer(l, inputs);
  };
  const auto variable = [&](const std::string& name, LayerId owner) {
    Variable v;
    v.name = name;
    v.shape = {4};
    v.layer = owner;
    model.add_variable(v);
  };
  variable("a", layer("l0", {}));
  variable("b", layer("l1", {0}));
  const LayerId two = layer("l2", {0});
  variable("c", two);
  variable("d", two);
  variable("e", layer("l3", {1, 2}));
  CHECK(tic_ranks(model) == std::vector<int>{0, 0, 1, 1, 2});

  const Strategy strategy = build_strategy("tictac", request_for(model, make_cluster(2, 1, 2), 2));
  CHECK(strategy.variables[4].priority == 2);
  CHECK(strategy.graph.scheduling.pulls_only);
  CHECK(strategy.graph.pull_at_step_start);
  CHECK_FALSE(strategy.graph.shared_process);
  std::vector<int> nodes;
  for (VariableId id = 0; id < 5; ++id) nodes.push_back(ps_of(strategy, id).server.node);
  CHECK(nodes == std::vector<int>{2, 3, 2, 3, 2});
  CHECK_FALSE(ps_of(strategy, 0).local_aggregation);
  CHECK(build_strategy("tictac", request_for(model, make_cluster(2, 1), 2, {{"order", "fixed"}})).graph.scheduling ==
        Scheduling{});
  CHECK(tic_ranks(chain({{4}})) == std::vector<int>{0});
}

TEST_CASE("options are strict", "[strategies]") {
  const Model model = chain({{4}, {4}});
  const Cluster cluster = make_cluster(2, 1);
  const auto error = [&](const std::string& builder, const std::string& name, const std::string& value) {
    return error_of(builder, request_for(model, cluster, 2, {{name, value}}));
  };
  CHECK(error_of("hoorovod", request_for(model, cluster, 2)) ==
        "error: unknown strategy builder 'hoorovod'\n  help: did you mean 'horovod'?");
  CHECK(error("ddp", "buket", "1MiB") == "error: strategy 'ddp' has no option 'buket'\n  help: did you mean 'bucket'?");
  CHECK(error("mg-wfbp", "staleness", "1") ==
        "error: strategy 'mg-wfbp' has no option 'staleness'\n"
        "  help: known options: algorithm, collectives_overlap_between_nodes, collectives_overlap_in_node, "
        "compressor, micro_steps, per_operation_cost, powersgd_rank, recompute");
  CHECK(error("ddp", "bucket", "25") ==
        "error: option 'bucket' of strategy 'ddp': expected a size with its unit, such as 25MiB or 512B, got '25'");
  CHECK(error("ddp", "bucket", "0B") ==
        "error: option 'bucket' of strategy 'ddp': 0B is out of range: expected at least 1B");
  CHECK(error("horovod", "cycle", "5") ==
        "error: option 'cycle' of strategy 'horovod': expected a time with its unit, such as 10us or 1.5ms, got '5'");
  CHECK(error("horovod", "cycle", "-1ms") ==
        "error: option 'cycle' of strategy 'horovod': -1ms is out of range: expected at least 0");
  CHECK(error("all-reduce", "chunk", "0") ==
        "error: option 'chunk' of strategy 'all-reduce': 0 is out of range: expected from 1 to 2147483647");
  CHECK(error("all-reduce", "chunk", "many") ==
        "error: option 'chunk' of strategy 'all-reduce': expected a whole number, got 'many'");
  CHECK(error("all-reduce", "spec", "nccle") ==
        "error: option 'spec' of strategy 'all-reduce': 'nccle' is not one of auto, nccl, ring\n  help: did you mean "
        "'nccl'?");
  CHECK(error("poseidon", "hybrid", "yes") ==
        "error: option 'hybrid' of strategy 'poseidon': expected true or false, got 'yes'");
  CHECK(error("byteps", "servers", "3") ==
        "error: option 'servers' of strategy 'byteps': 3 is out of range: expected from 0 to 2");
  CHECK(error("tictac", "order", "tac") ==
        "error: option 'order' of strategy 'tictac': 'tac' orders by measured times, and a strategy holds no times\n"
        "  help: use order=tic, or a strategy file with a `priority` for each variable");
  CHECK(error("p3", "servers", "cpu-only") ==
        "option 'servers' says cpu-only and cluster 'lab' has no node without GPUs");
  CHECK(error_of("ps", request_for(model, cluster, 2, {{"sync", "false"}, {"staleness", "1"}})) ==
        "error: option 'staleness' of strategy 'ps': a bound on staleness needs sync=true");
  CHECK(error("ps", "backups", "2") ==
        "error: option 'backups' of strategy 'ps': 2 is out of range: expected from 0 to 1");
  for (const std::pair<std::string, std::string> other : {std::pair{"sync", "false"}, std::pair{"staleness", "1"}})
    CHECK(error_of("ps", request_for(model, cluster, 2, {{"backups", "1"}, other})) ==
          "error: option 'backups' of strategy 'ps': backup workers need sync=true and staleness=0");
}
