// Pairs for data sets, their layout on disk, and AutoDist's format.
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "platforms/reader.hpp"
#include "sim/engine/evaluators.hpp"
#include "strategies/builders.hpp"
#include "strategies/dataset/autodist_strategy.hpp"
#include "strategies/dataset/layout.hpp"
#include "strategies/dataset/question.hpp"
#include "strategies/search/pairs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/small_problems.hpp"

using namespace simsync;
using namespace simsync::test;
namespace fs = std::filesystem;

namespace {

Problem small_problem() {
  return prepare(
      {.model = "alexnet", .cluster = "g4dn.12xlarge", .strategy = "ddp", .workers = 8, .batch = {}, .settings = {}});
}

/// Pairs of one problem whose second builder does not apply.
struct Source {
  Problem problem = small_problem();
  StrategySampler sampler;
  std::unique_ptr<Evaluator> estimates = estimating_evaluator(problem);
  PairSource source;

  explicit Source(const std::map<std::string, std::string>& space = {}, std::uint64_t seed = 1)
      : sampler(make_space(space, problem.cluster), {problem.model, problem.cluster, 8}),
        source{.sampler = sampler,
               .samples = problem.samples(),
               .estimates = *estimates,
               .trials = *estimates,
               .builders = 2,
               .builder = [this](int i) -> std::optional<std::pair<std::string, Strategy>> {
                 if (i == 1) return std::nullopt;
                 return std::pair{std::string("ddp"), problem.strategy};
               },
               .fits = [](const Strategy&) { return true; },
               .seed = seed} {}
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  ~Source() = default;
};

std::string id_at(const PairSource& source, int index) {
  const auto pair = pair_at(source, index);
  REQUIRE(pair);
  return pair->candidate.id;
}

class Folder {
public:
  Folder() : path_(fs::temp_directory_path() / ("simsync-dataset-" + std::to_string(::getpid()))) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  void add(const std::string& name, const std::string& text) const {
    make_folders((path_ / name).parent_path().string());
    write_file((path_ / name).string(), text);
  }
  [[nodiscard]] std::string path() const { return path_.string(); }

private:
  fs::path path_;
};

std::vector<ResourceNode> nodes_of(const Cluster& cluster, int workers) {
  return parse_resource_nodes(resource_spec_text(cluster, workers), "spec");
}

/// The same but for priorities, at which nothing looks, and the name.
Strategy comparable(Strategy strategy) {
  for (VariableStrategy& entry : strategy.variables) entry.priority = 0;
  strategy.name = "-";
  return strategy;
}

std::string refusal(const StrategyMessage& message, const MessageTarget& target) {
  try {
    (void)from_message(message, target);
  } catch (const InputError& e) {
    return e.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("a pair depends on its number, not on what was drawn before", "[dataset]") {
  const Source one;
  const Source other;
  const std::string fifth = id_at(one.source, 5);
  const std::string fourth = id_at(one.source, 4);
  CHECK(id_at(other.source, 4) == fourth);
  CHECK(id_at(other.source, 5) == fifth);
  CHECK(fourth != fifth);
  const Source seeded({}, 2);
  CHECK(id_at(seeded.source, 5) != fifth);
}

TEST_CASE("builders come first; a draw takes the place of one that does not apply", "[dataset]") {
  const Source lab;
  const auto first = pair_at(lab.source, 0);
  REQUIRE(first);
  CHECK(first->round == 0);
  CHECK(first->candidate.origin == "ddp");
  for (const int index : {1, 2}) {
    const auto drawn = pair_at(lab.source, index);
    REQUIRE(drawn);
    CHECK(drawn->number == index);
    CHECK(drawn->round == 1);
    CHECK(drawn->candidate.origin == "drawn");
  }
}

TEST_CASE("what does not fit or has too many shards is drawn again, and not for ever", "[dataset]") {
  Source lab;
  lab.source.fits = [](const Strategy& strategy) { return schedule_of(strategy) == Schedule::Sharded; };
  for (const int index : {0, 1, 2, 3})
    CHECK(schedule_of(pair_at(lab.source, index)->candidate.strategy) == Schedule::Sharded);
  lab.source.fits = [](const Strategy&) { return false; };
  CHECK_FALSE(pair_at(lab.source, 3));
  lab.source.fits = [](const Strategy&) { return true; };
  lab.source.most_shards = 16.0;  // AlexNet's variables as they are
  for (const int index : {3, 4, 5}) CHECK(shards_of(pair_at(lab.source, index)->candidate.strategy) == 16.0);
}

TEST_CASE("a question is read back as it was written", "[dataset]") {
  DatasetQuestion question{.models = {"vgg16", "./my model.yaml"},
                           .clusters = {"dgx-1"},
                           .workers = {8, 16},
                           .pairs = 105,
                           .seed = 18'446'744'073'709'551'615U,
                           .batch = 64,
                           .calibration = "dgx.yaml",
                           .settings = {{"space.shards", "4"}, {"precision", "amp"}},
                           .shard = 2,
                           .shards = 3};
  CHECK(parse_question(to_yaml(question), "dataset.yaml") == question);
  question.batch.reset();
  question.calibration.clear();
  question.settings.clear();
  question.shard = question.shards = 1;
  CHECK(parse_question(to_yaml(question), "dataset.yaml") == question);
}

TEST_CASE("a resource specification is one for AutoDist and for simsync", "[dataset]") {
  // 6 workers on nodes of 4: node0 with all GPUs, node1 with two of them.
  const Cluster cluster = grown_to(find_cluster("g4dn.12xlarge"), 6);
  const std::string text = resource_spec_text(cluster, 6);
  CHECK(text ==
        "nodes:\n"
        "  - {address: node0, cpus: [0], gpus: [0, 1, 2, 3], network_bandwidth: 50, chief: true}\n"
        "  - {address: node1, cpus: [0], gpus: [0, 1], network_bandwidth: 50, ssh_config: simulated}\n"
        "ssh:\n"
        "  simulated: {username: nobody, key_file: none}\n");
  const Cluster read = parse_autodist_resource_spec(text, "spec", "T4");
  CHECK(read.node_count() == 2);
  CHECK(read.gpu_count() == 6);
  const auto nodes = nodes_of(cluster, 6);
  REQUIRE(nodes.size() == 2);
  CHECK(nodes[1].address == "node1");
  CHECK(nodes[1].gpus == 2);
}

TEST_CASE("runtimes are read as YAML and as JSON", "[dataset]") {
  CHECK(runtime_text({Seconds{0.25}, Seconds{0.75}}) == "runtime: [0.25, 0.75]\naverage: 0.5\n");
  CHECK(parse_runtime(runtime_text({Seconds{0.1}}), "r").value() == 0.1);
  CHECK(parse_runtime(R"({"runtime": [1.0, 2.0], "average": 1.5, "host": "a"})", "r").value() == 1.5);
  CHECK_THROWS_AS(parse_runtime("runtime: [1.0]\n", "r"), InputError);
  CHECK_THROWS_AS(parse_runtime("average: -1\n", "r"), InputError);
}

TEST_CASE("both published layouts are found", "[dataset]") {
  const Folder folder;
  for (const char* file : {"vgg16/graph_item", "vgg16/cluster-A/resource_spec/1", "vgg16/cluster-A/runtime/1.yml",
                           "vgg16/cluster-A/strategy/1", "vgg16/cluster-B/resource_spec/2", "vgg16/cluster-B/runtime/2",
                           "vgg16/cluster-B/strategies/2"})
    folder.add(std::string("v2/") + file, "-");
  const auto second = find_pairs(folder.path() + "/v2");
  REQUIRE(second.size() == 2);
  CHECK(second[0].id == "1");
  CHECK(second[0].runtime.ends_with("cluster-A/runtime/1.yml"));
  CHECK(second[1].strategy.ends_with("cluster-B/strategies/2"));
  for (const char* file : {"cluster1/run/resource.yml", "cluster1/run/runtimes/7", "cluster1/run/strategies/7"})
    folder.add(std::string("v1/ncf/") + file, "-");
  const auto first = find_pairs(folder.path() + "/v1");
  REQUIRE(first.size() == 1);
  CHECK(first[0].resource_spec.ends_with("run/resource.yml"));
  folder.add("v1/ncf/cluster1/run/strategies/8", "-");
  CHECK_THROWS_AS(find_pairs(folder.path() + "/v1"), InputError);
  CHECK_THROWS_AS(find_pairs(folder.path() + "/v3"), InputError);
}

TEST_CASE("what AutoDist can say comes back from its message", "[dataset]") {
  const Problem problem = small_problem();
  const StrategySampler sampler(make_space({{"schedules", "read-at-start"},
                                            {"synchronizers", "parameter-server,all-reduce"},
                                            {"algorithms", "auto"},
                                            {"compressors", "none"}},
                                           problem.cluster),
                                {problem.model, problem.cluster, 8});
  const MessageTarget target{problem.model, problem.cluster, nodes_of(problem.cluster, 8), "file"};
  RandomDecisions decisions(3);
  std::vector<Strategy> all;
  for (int i = 0; i < 30; ++i) all.push_back(sampler.draw(decisions));
  for (const char* name : {"ps", "ps-load-balancing", "partitioned-ps", "parallax", "all-reduce"})
    all.push_back(build_strategy(
        name, {.model = problem.model, .cluster = problem.cluster, .workers = 8, .batch = 1, .options = {}}));
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(i);
    const Expressed expressed = to_message(all[i], problem.model, problem.cluster);
    CHECK(expressed.why_not.empty());
    REQUIRE(expressed.message);
    const Strategy read = from_message(*expressed.message, target);
    // What only servers look at is as TensorFlow has it, also where there is none.
    const bool same = comparable(read).variables == comparable(all[i]).variables;
    CHECK(same);
    const auto estimates = estimating_evaluator(problem);
    CHECK_THAT(estimates->evaluate(read).step.value(),
               WithinRel(estimates->evaluate(all[i]).step.value(), 1e-12));  // sums in another order
  }
}

TEST_CASE("what AutoDist cannot say is not said otherwise", "[dataset]") {
  const Problem problem = small_problem();
  const auto why_not = [&](const char* name) {
    const Strategy strategy = build_strategy(
        name, {.model = problem.model, .cluster = problem.cluster, .workers = 8, .batch = 1, .options = {}});
    return to_message(strategy, problem.model, problem.cluster).why_not;
  };
  CHECK(why_not("ddp") == "another graph level than AutoDist's");
  CHECK(why_not("byteps") == "another graph level than AutoDist's");
}

TEST_CASE("messages survive the wire", "[dataset]") {
  StrategyMessage message{.id = "20201115T1", .path = "/tmp/s", .nodes = {}, .replicas = {"a:GPU:0", "b:GPU:0"}};
  message.nodes.push_back(
      {.variable = "w:0",
       .synchronizer = ServerMessage{.destination = "a:CPU:0", .local_replication = true, .sync = true, .staleness = 2},
       .partitioner = {},
       .parts = {}});
  NodeMessage cut{.variable = "v:0", .synchronizer = {}, .partitioner = "2,1", .parts = {}};
  cut.parts.push_back(
      {.variable = "v/part_0:0",
       .synchronizer =
           AllReduceMessage{.spec = MessageSpec::Ring, .compressor = MessageCompressor::CastWithFeedback, .group = 7},
       .partitioner = {},
       .parts = {}});
  cut.parts.push_back({.variable = "v/part_1:0", .synchronizer = AllReduceMessage{}, .partitioner = {}, .parts = {}});
  message.nodes.push_back(cut);
  std::string bytes;
  try {
    bytes = to_bytes(message);
  } catch (const CapabilityError& e) {
    WARN(e.what());
    return;
  }
  CHECK(parse_message(bytes, "file") == message);
  // By hand from AutoDist's strategy.proto: field 1 (id) is a text of 10 bytes, so the message begins with 0A 0A.
  CHECK(bytes.substr(0, 12) ==
        "\x0a\x0a"
        "20201115T1");
  // Field 3 (node_config) of 22 bytes: var_name (1) "w:0" is 5 bytes; PSSynchronizer (2) of 15 bytes: destination (1)
  // 9 bytes, local_replication (2), sync (3) and staleness (4) 2 bytes each.
  const std::string node = std::string("\x1a\x16\x0a\x03w:0\x12\x0f\x0a\x07") + "a:CPU:0" + "\x10\x01\x18\x01\x20\x02";
  CHECK(bytes.find(node) != std::string::npos);
  CHECK_THROWS_AS(parse_message("schema: simsync/strategy/v1\n", "file"), InputError);
  CHECK_THROWS_AS(parse_message("", "file"), InputError);
}

TEST_CASE("messages that do not fit are refused by name", "[dataset]") {
  const Model model = chain({{4, 2}, {8, 3}});
  const Cluster cluster = make_cluster(2, 1);
  const MessageTarget target{model, cluster, {{"x", 1}, {"y", 1}}, "file"};
  const auto node = [](const char* name) {
    return NodeMessage{.variable = name, .synchronizer = AllReduceMessage{}, .partitioner = {}, .parts = {}};
  };
  StrategyMessage good{
      .id = "s", .path = {}, .nodes = {node("a/weight:0"), node("b/weight")}, .replicas = {"x:GPU:0", "y:GPU:0"}};
  CHECK(refusal(good, target) == "none");
  StrategyMessage bad = good;
  bad.nodes[1].variable = "b/weigth:0";
  CHECK(refusal(bad, target) ==
        "file: error: variable 'b/weigth:0' is none of model 'chain'\n  help: did you mean 'b/weight'?");
  bad = good;
  bad.nodes.pop_back();
  CHECK(refusal(bad, target) == "file: error: no entry for variable 'b/weight' of model 'chain'");
  bad = good;
  bad.nodes[1] = bad.nodes[0];
  CHECK(refusal(bad, target) == "file: error: variable 'a/weight' is there twice");
  bad = good;
  bad.nodes[0].synchronizer = ServerMessage{.destination = "z:CPU:0"};
  CHECK(refusal(bad, target) == "file: error: device 'z:CPU:0': the resource specification has no node 'z'");
  bad = good;
  bad.nodes[0].partitioner = "1,3";
  CHECK(refusal(bad, target) ==
        "file: error: variable 'a/weight:0': the partitioner '1,3' with 0 shards does not fit its shape [4, 2]");
  bad = good;
  std::swap(bad.replicas[0], bad.replicas[1]);
  CHECK(refusal(bad, target) ==
        "file: error: replica 0 is on y:GPU:0, and cluster 'lab' has its worker 0 on node0:gpu0\n  help: the cluster "
        "needs as many GPUs in each node as the resource specification");
}
