#include "base/error.hpp"
#include "strategies/partition.hpp"
#include "strategies/placement.hpp"
#include "strategies/reader.hpp"
#include "strategies/rules.hpp"
#include "strategies/strategy.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/small_problems.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

/// a: 4 x 6 dense, b: 10 dense, t: 100 x 4 sparse.
Model three_variables() {
  Model model = chain({{4, 6}, {10}});
  add_tensor(model, "t", {100, 4}, LayerKind::Embedding, true);
  return model;
}

template <class F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "no error";
}

const std::string kHead = "schema: simsync/strategy/v1\nname: s\n";
const std::string kLast = "  - {match: {any: true}, synchronizer: all-reduce}\n";

std::string parse_error(const std::string& body) {
  const Model model = three_variables();
  const Cluster cluster = make_cluster(2, 2);
  return error_of([&] { (void)parse_strategy(kHead + body, "s.yaml", request_for(model, cluster, 4)); });
}

std::string check_error(const std::function<void(Strategy&)>& spoil) {
  const Model model = three_variables();
  const Cluster cluster = make_cluster(2, 2);
  Strategy strategy = build_strategy("ps", request_for(model, cluster, 4));
  spoil(strategy);
  return error_of([&] { check(strategy, model, cluster); });
}

PsSynchronizer& ps_of(Strategy& strategy, VariableId id) {
  return std::get<PsSynchronizer>(strategy.variables.at(id).shards.front().synchronizer);
}

}  // namespace

TEST_CASE("the first shards of a split get the remainder", "[strategies]") {
  CHECK(split_length(10, 4) == std::vector<std::int64_t>{3, 3, 2, 2});
  CHECK(split_length(5, 1) == std::vector<std::int64_t>{5});
  Variable v;
  v.shape = {3, 5, 7};
  CHECK(split_axis(v, 1, 2) == std::vector<std::int64_t>{63, 42});
  CHECK(cut_flat(10, 4) == std::vector<std::int64_t>{4, 4, 2});
  CHECK(cut_flat(8, 4) == std::vector<std::int64_t>{4, 4});
  // Rows of 35 elements: two fit into 100, so 3 rows make 2 shards of 2 and 1 rows; into 10 none fits.
  CHECK(cut_rows(v, 100) == std::vector<std::int64_t>{70, 35});
  CHECK(cut_rows(v, 10) == std::vector<std::int64_t>{35, 35, 35});
}

TEST_CASE("deficits follow the weights", "[strategies]") {
  // Weights 3 : 1. Totals 1, 2, 3, 4 give deficits (.75,.25) (.5,.5) (1.25-... ) -> 0, 0 (tie: first), 1, 0.
  Placement placement({host(0), host(1), host(2)}, {3.0, 1.0, 0.0});
  std::vector<int> nodes;
  for (int i = 0; i < 4; ++i) nodes.push_back(placement.largest_deficit(1.0).node);
  CHECK(nodes == std::vector<int>{0, 0, 1, 0});
  CHECK(placement.loads() == std::vector<double>{3.0, 1.0, 0.0});
  CHECK_THROWS_AS(Placement(std::vector<Place>{}), PlanError);
}

TEST_CASE("globs", "[strategies]") {
  CHECK(matches_glob("*", ""));
  CHECK(matches_glob("fc*/weight", "fc6/weight"));
  CHECK_FALSE(matches_glob("fc*/weight", "fc6/weights"));
  CHECK(matches_glob("*/b?as", "x/y/bias"));
  CHECK(matches_glob("a*b*c", "aXbYbZc"));
  CHECK_FALSE(matches_glob("?", ""));
}

TEST_CASE("check refuses what does not fit the model or the cluster", "[strategies]") {
  CHECK(check_error([](Strategy&) {}) == "no error");
  CHECK(check_error([](Strategy& s) { s.variables.pop_back(); }) ==
        "strategy 'ps' has 2 variables, model 'chain' has 3");
  CHECK(check_error([](Strategy& s) { s.variables[1].variable = 2; }) ==
        "strategy 'ps': entry 1 is for variable 2; entries must be in the model's order, each once");
  CHECK(check_error([](Strategy& s) { s.variables[0].shards[0].elements = 23; }) ==
        "strategy 'ps': variable 'a/weight' has 24 elements and its shards have 23");
  CHECK(check_error([](Strategy& s) {
          s.variables[0].shards.assign(2, s.variables[0].shards[0]);
          s.variables[0].shards[0].elements = 7;
          s.variables[0].shards[1].elements = 17;
          s.variables[0].partition_axis = 0;
        }) ==
        "strategy 'ps': variable 'a/weight' has a shard of 7 elements, which is no multiple of the 6 elements of one "
        "entry of axis 0");
  CHECK(check_error([](Strategy& s) {
          s.variables[2].shards.assign(2, s.variables[2].shards[0]);
          for (auto& shard : s.variables[2].shards) shard.elements = 200;
          s.variables[2].partition_axis = kFlatAxis;
        }) ==
        "strategy 'ps': variable 't/weight' is sparse and split on another axis than 0; only whole rows can be told "
        "apart by their index");
  CHECK(check_error([](Strategy& s) { s.variables[0].partition_axis = 0; }) ==
        "strategy 'ps': variable 'a/weight' has 1 shards and partition axis 0; one shard goes with axis -1, several "
        "with another");
  CHECK(check_error([](Strategy& s) {
          ps_of(s, 0).server = {2, -1};
        }) == "strategy 'ps': variable 'a/weight' is on the server 'node2:cpu0', which cluster 'lab' lacks");
  CHECK(check_error([](Strategy& s) {
          ps_of(s, 0).server = {1, 2};
        }) == "strategy 'ps': variable 'a/weight' is on the server 'node1:gpu2', which cluster 'lab' lacks");
  CHECK(check_error([](Strategy& s) { s.variables[1].shards[0].synchronizer = SfbSynchronizer{}; }) ==
        "strategy 'ps': variable 'b/weight' cannot be sent as sufficient factors; they exist for the whole weight "
        "matrix of a dense "
        "layer only");
  CHECK(check_error([](Strategy& s) { s.graph.workers = 5; }) ==
        "strategy 'ps': 5 workers on cluster 'lab', which has 4 GPUs");
}

TEST_CASE("every builder's strategy reads back equal", "[strategies]") {
  Model model = chain({{64, 30}, {7}, {}});
  add_tensor(model, "t", {300, 40}, LayerKind::Embedding, true);
  const Cluster cluster = make_cluster(3, 2, 1);
  for (const auto& name : known_builders()) {
    for (const int workers : {1, 2, 6}) {
      CAPTURE(name, workers);
      const BuildRequest request = request_for(model, cluster, workers);
      const Strategy built = build_strategy(name, request);
      const Strategy read = parse_strategy(to_yaml(built, model), "out.yaml", request);
      CHECK(built == read);
    }
  }
}

TEST_CASE("unusual values survive a round trip", "[strategies]") {
  Model model("a: model # \"x\"", 1, "image");
  add_tensor(model, "- odd: \\ name", {8, 2});
  const Cluster cluster = make_cluster(2, 2);
  const BuildRequest request = request_for(model, cluster, 2);
  Strategy strategy = build_strategy("ps", request);
  strategy.name = "tab\there";
  VariableStrategy& entry = strategy.variables[0];
  entry.partition_axis = 1;
  entry.shards.assign(2, entry.shards[0]);
  for (auto& shard : entry.shards) shard.elements = 8;
  entry.shards[0].synchronizer = AllReduceSynchronizer{.algorithm = CollectiveAlgorithm::HalvingDoubling, .group = 3};
  std::get<PsSynchronizer>(entry.shards[1].synchronizer) = {
      .server = {1, 1}, .local_replication = true, .sync = true, .staleness = 3, .local_aggregation = false};
  entry.compressor = Compressor::PowerSgd;
  entry.powersgd_rank = 7;
  entry.priority = -5;
  strategy.graph.fusion.cycle = Seconds{1.0 / 3.0};
  strategy.graph.per_operation_cost = Seconds{1.7e-7};
  strategy.graph.scheduling = {.ordering = Ordering::Priority,
                               .partition = {12345},
                               .credit = {1},
                               .credit_is_strict = true,
                               .pulls_only = true};
  CHECK(parse_strategy(to_yaml(strategy, model), "out.yaml", request) == strategy);
  strategy = build_strategy("ps", request_for(model, cluster, 2, {{"backups", "1"}}));
  CHECK(parse_strategy(to_yaml(strategy, model), "out.yaml", request) == strategy);
}

TEST_CASE("the first matching rule decides", "[strategies]") {
  const Model model = three_variables();
  const Cluster cluster = make_cluster(2, 2, 1);
  const std::string text = kHead +
                           "rules:\n"
                           "  - match: {sparse: true}\n"
                           "    synchronizer: parameter-server\n"
                           "    servers: [node2:cpu0, node0:gpu1]\n"
                           "    placement: round-robin\n"
                           "    shards: 3\n"
                           "  - match: {name: 'b*', bytes_at_most: 40B}\n"
                           "    synchronizer: all-reduce\n"
                           "    compressor: fp16\n"
                           "  - match: {any: true}\n"
                           "    synchronizer: parameter-server\n"
                           "    piece: 64B\n"
                           "    priority: layer\n";
  const Strategy strategy = parse_strategy(text, "s.yaml", request_for(model, cluster, 4));
  // a: 24 elements in pieces of 16 on the only node without GPUs.
  REQUIRE(strategy.variables[0].shards.size() == 2);
  CHECK(strategy.variables[0].shards[1].elements == 8);
  CHECK(std::get<PsSynchronizer>(strategy.variables[0].shards[1].synchronizer).server == host(2));
  CHECK(strategy.variables[1].compressor == Compressor::Fp16);
  // t: 100 rows in three: 34, 33, 33 rows of 4.
  REQUIRE(strategy.variables[2].shards.size() == 3);
  CHECK(strategy.variables[2].shards[0].elements == 136);
  CHECK(std::get<PsSynchronizer>(strategy.variables[2].shards[1].synchronizer).server == Place{0, 1});
  CHECK(std::get<PsSynchronizer>(strategy.variables[2].shards[2].synchronizer).server == host(2));
}

TEST_CASE("buckets fill in backward order and chunks count members", "[strategies]") {
  // Backward order e d c b a with 40 B each. A bucket of 70 B closes with its second member: e d | c b | a.
  const Model model = chain({{10}, {10}, {10}, {10}, {10}});
  const Cluster cluster = make_cluster(1, 2);
  const auto groups = [&](const std::string& key) {
    const Strategy s =
        parse_strategy(kHead + "rules:\n  - {match: {any: true}, synchronizer: all-reduce, " + key + "}\n", "s.yaml",
                       request_for(model, cluster, 2));
    std::vector<int> out;
    for (const auto& v : s.variables) out.push_back(std::get<AllReduceSynchronizer>(v.shards[0].synchronizer).group);
    return out;
  };
  CHECK(groups("bucket: 70B") == std::vector<int>{2, 1, 1, 0, 0});
  CHECK(groups("chunk: 4") == std::vector<int>{1, 0, 0, 0, 0});
}

TEST_CASE("the presets fit any model", "[strategies]") {
  const Model model = three_variables();
  const Cluster cluster = make_cluster(2, 2);
  CHECK(known_strategies() == std::vector<std::string>{"3d", "compressed-all-reduce", "hsdp", "megatron",
                                                       "megatron-sequence", "mixed", "moe", "sharded-ps"});
  const Cluster boxes = make_cluster(4, 8);  // whole replicas of up to 8 x 4 ranks
  for (const auto& name : known_strategies()) CHECK(find_strategy(name, request_for(model, boxes, 32)).name == name);
  CHECK(find_strategy("ddp", request_for(model, cluster, 4)).name == "ddp");
  CHECK(error_of([&] { (void)find_strategy("mixd", request_for(model, cluster, 4)); }) ==
        "error: unknown strategy 'mixd'\n  help: did you mean 'mixed'?");
  CHECK(error_of([&] { (void)find_strategy("no/such.yaml", request_for(model, cluster, 4)); }) ==
        "no/such.yaml: error: no such file");
  CHECK(error_of([&] {
          (void)find_strategy("mixed", request_for(model, cluster, 4, {{"bucket", "1B"}}));
        })
            .ends_with("/mixed.yaml' takes no option 'bucket'\n  help: options belong to builders; edit a copy of the "
                       "file instead"));
}

TEST_CASE("bad rules are reported with their place", "[strategies]") {
  CHECK(
      parse_error("") ==
      "s.yaml:1:1: error: expected the key `rules` or the key `nodes`\n    1 | schema: simsync/strategy/v1\n      | ^");
  CHECK(parse_error("rules:\n  - {match: {sparse: true}, synchronizer: all-reduce}\n") ==
        "s.yaml:4:5: error: the last rule must match everything\n"
        "    4 |   - {match: {sparse: true}, synchronizer: all-reduce}\n"
        "      |     ^\n"
        "  key:  rules[0]\n"
        "  help: end the list with a rule that has match: {any: true}");
  CHECK(parse_error("rules:\n" + kLast + kLast) ==
        "s.yaml:5:5: error: this rule is never reached: the one before matches everything\n"
        "    5 |   - {match: {any: true}, synchronizer: all-reduce}\n"
        "      |     ^\n"
        "  key:  rules[1]");
  CHECK(parse_error(
            "rules:\n  - {match: {any: true}, synchronizer: parameter-server, servers: [node0:cpu0, node1:gpu2]}\n") ==
        "s.yaml:4:80: error: unknown device 'node1:gpu2'\n"
        "    4 |   - {match: {any: true}, synchronizer: parameter-server, servers: [node0:cpu0, node1:gpu2]}\n"
        "      |                                                                                ^\n"
        "  key:  rules[0].servers[1]\n"
        "  note: cluster 'lab' has node1:cpu0, node1:gpu0, node1:gpu1\n"
        "  help: did you mean 'node1:gpu0'?");
  CHECK(
      parse_error("rules:\n  - {match: {any: true}, synchronizer: parameter_server}\n") ==
      "s.yaml:4:40: error: 'parameter_server' is not one of parameter-server, all-reduce, sufficient-factors, sharded\n"
      "    4 |   - {match: {any: true}, synchronizer: parameter_server}\n"
      "      |                                        ^\n"
      "  key:  rules[0].synchronizer\n"
      "  help: did you mean 'parameter-server'?");
  CHECK(
      parse_error("rules:\n  - {match: {any: true}, synchronizer: all-reduce, staleness: 1}\n") ==
      "s.yaml:4:52: error: unknown key 'staleness'\n"
      "    4 |   - {match: {any: true}, synchronizer: all-reduce, staleness: 1}\n"
      "      |                                                    ^\n"
      "  key:  rules[0].staleness\n"
      "  help: known keys: algorithm, axis, bucket, chunk, compressor, match, piece, powersgd_rank, priority, shards, "
      "sparse_as_dense, synchronizer");
  CHECK(parse_error("rules:\n  - {match: {any: true, sparse: true}, synchronizer: all-reduce}\n") ==
        "s.yaml:4:13: error: `any: true` stands alone; drop it or the other conditions\n"
        "    4 |   - {match: {any: true, sparse: true}, synchronizer: all-reduce}\n"
        "      |             ^\n"
        "  key:  rules[0].match");
  CHECK(parse_error("rules:\n  - {match: {kind: convolution}, synchronizer: all-reduce}\n" + kLast) ==
        "s.yaml:4:20: error: 'convolution' is not one of conv, dense, embedding, norm, activation, pool, attention, "
        "recurrent, "
        "elementwise, loss\n"
        "    4 |   - {match: {kind: convolution}, synchronizer: all-reduce}\n"
        "      |                    ^\n"
        "  key:  rules[0].match.kind");
  CHECK(parse_error("rules:\n  - {match: {bytes_at_most: 64}, synchronizer: all-reduce}\n" + kLast) ==
        "s.yaml:4:29: error: expected a size with its unit, such as 25MiB or 512B, got '64'\n"
        "    4 |   - {match: {bytes_at_most: 64}, synchronizer: all-reduce}\n"
        "      |                             ^\n"
        "  key:  rules[0].match.bytes_at_most");
  CHECK(parse_error("graph: {fusion: {kind: single}}\nrules:\n  - {match: {any: true}, synchronizer: all-reduce, "
                    "bucket: 1MiB}\n") ==
        "s.yaml:5:3: error: `bucket` and `chunk` make groups, which fusion kind 'single' ignores\n"
        "    5 |   - {match: {any: true}, synchronizer: all-reduce, bucket: 1MiB}\n"
        "      |   ^\n"
        "  key:  rules\n"
        "  help: drop graph.fusion.kind or say groups");
}

TEST_CASE("bad nodes are reported with their place", "[strategies]") {
  const std::string ab = "  - {variable: b/weight, shards: [{synchronizer: all-reduce}]}\n";
  const std::string t = "  - {variable: t/weight, shards: [{synchronizer: all-reduce}]}\n";
  const std::string a = "  - {variable: a/weight, shards: [{synchronizer: all-reduce}]}\n";
  CHECK(parse_error("nodes:\n" + a + ab + t) == "no error");
  CHECK(parse_error("nodes:\n" + ab) ==
        "s.yaml:4:3: error: 2 of the 3 variables of model 'chain' have no entry: a/weight, t/weight\n"
        "    4 |   - {variable: b/weight, shards: [{synchronizer: all-reduce}]}\n"
        "      |   ^\n"
        "  key:  nodes");
  CHECK(parse_error("nodes:\n" + a + ab + t + "  - {variable: a/wieght, shards: [{synchronizer: all-reduce}]}\n") ==
        "s.yaml:7:16: error: model 'chain' has no variable 'a/wieght'\n"
        "    7 |   - {variable: a/wieght, shards: [{synchronizer: all-reduce}]}\n"
        "      |                ^\n"
        "  key:  nodes[3].variable\n"
        "  help: did you mean 'a/weight'?");
  CHECK(parse_error("nodes:\n" + a + ab + t + t) ==
        "s.yaml:7:16: error: 't/weight' has an entry already\n"
        "    7 |   - {variable: t/weight, shards: [{synchronizer: all-reduce}]}\n"
        "      |                ^\n"
        "  key:  nodes[3].variable");
  CHECK(parse_error("nodes:\n  - {variable: a/weight, shards: [{synchronizer: parameter-server, server: cpu0}]}\n" +
                    ab + t) ==
        "s.yaml:4:76: error: expected a place such as node0:cpu0 or node1:gpu2, got 'cpu0'\n"
        "    4 |   - {variable: a/weight, shards: [{synchronizer: parameter-server, server: cpu0}]}\n"
        "      |                                                                            ^\n"
        "  key:  nodes[0].shards[0].server");
  CHECK(
      parse_error(
          "nodes:\n  - {variable: a/weight, axis: 2, shards: [{elements: 12, synchronizer: all-reduce}, {elements: 12, "
          "synchronizer: all-reduce}]}\n" +
          ab + t)
          .starts_with("s.yaml:4:32: error: 2 is out of range: expected from 0 to 1\n"));
  CHECK(
      parse_error(
          "nodes:\n  - {variable: a/weight, axis: 0, shards: [{elements: 12, synchronizer: all-reduce}, {elements: 6, "
          "synchronizer: all-reduce}]}\n" +
          ab + t)
          .starts_with("s.yaml:4:43: error: the shards have 18 elements, variable 'a/weight' has 24\n"));
  CHECK(parse_error("workers: 8\nnodes:\n" + a + ab + t) ==
        "s.yaml:3:10: error: this strategy is for 8 workers, and 4 take part\n"
        "    3 | workers: 8\n"
        "      |          ^\n"
        "  key:  workers");
  CHECK(parse_error("model: vgg16\nnodes:\n" + a + ab + t) ==
        "s.yaml:3:8: error: this strategy is for model 'vgg16', and the model is 'chain'\n"
        "    3 | model: vgg16\n"
        "      |        ^\n"
        "  key:  model");
}
