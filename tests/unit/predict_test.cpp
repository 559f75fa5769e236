#include "sim/engine/predict.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/file.hpp"
#include "base/spread.hpp"
#include "models/profile_writer.hpp"
#include "models/reader.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/mixed_cluster.hpp"

using namespace simsync;

namespace {

double compute_of(const std::string& first, const std::string& second) {
  const std::string path = test::mixed_cluster_file(first, second);
  const PredictedRow row = predict({.model = "resnet50",
                                    .cluster = path,
                                    .strategy = "ddp",
                                    .workers = 4,
                                    .batch = 32,
                                    .settings = {{"profile", "roofline"}}});
  std::filesystem::remove(path);
  return row.compute.value();
}

}  // namespace

TEST_CASE("the slowest kind of device sets the pace of a mixed cluster", "[predict][heterogeneous]") {
  // With layer times from the rooflines alone a mixed cluster computes as long as one of its slower devices only,
  // whichever comes first.
  const double slow = compute_of("T4", "T4");
  const double fast = compute_of("V100-SXM2-16GB", "V100-SXM2-16GB");
  REQUIRE(slow > 1.2 * fast);
  CHECK_THAT(compute_of("V100-SXM2-16GB", "T4"), WithinRel(slow, 1e-9));
  CHECK_THAT(compute_of("T4", "V100-SXM2-16GB"), WithinRel(slow, 1e-9));
}

TEST_CASE("embeddings of lm1b and ncf travel as rows or as tables, as sparse_as_dense says", "[predict][sparse]") {
  // Rows: an embedding of width w with l lookups per sample sends l x batch x (4 w + 8) B from every rank. Tables: all
  // of its bytes are all-reduced with the others.
  const auto model = GENERATE(as<std::string>{}, "lm1b", "ncf");
  const auto strategy = GENERATE(as<std::string>{}, "horovod", "all-reduce");
  CAPTURE(model, strategy);
  const auto asked = [&](const std::string& dense) {
    return PredictRequest{.model = model,
                          .cluster = "dgx-1",
                          .strategy = strategy,
                          .workers = 16,
                          .batch = 64,
                          .settings = {{"strategy.sparse_as_dense", dense}}};
  };
  const auto bytes = [&](const std::string& dense, CollectivePrimitive primitive) {
    double sum = 0.0;
    for (const Op& op : prepare(asked(dense)).plan.ops)
      if (const auto* all = std::get_if<Collective>(&op.body); all != nullptr && all->primitive == primitive)
        sum += all->bytes;
    return sum;
  };
  double rows = 0.0;
  double tables = 0.0;
  double others = 0.0;
  const Model described = find_model(model);
  for (const Variable& variable : described.variables()) {
    const auto whole = static_cast<double>(variable.bytes().count);
    (variable.sparse ? tables : others) += whole;
    if (variable.sparse)
      rows += variable.lookups_per_sample * 64 * (4.0 * static_cast<double>(variable.shape.at(1)) + 8.0);
  }
  REQUIRE(rows > 0.0);
  CHECK_THAT(bytes("false", CollectivePrimitive::AllGather), WithinRel(rows, 1e-12));
  CHECK_THAT(bytes("false", CollectivePrimitive::AllReduce), WithinRel(others, 1e-12));
  CHECK(bytes("true", CollectivePrimitive::AllGather) == 0.0);
  CHECK_THAT(bytes("true", CollectivePrimitive::AllReduce), WithinRel(others + tables, 1e-12));
  // 16 ranks receive 15 contributions each: less than a table of these models goes around.
  REQUIRE(15.0 * rows < 2.0 * tables);
  CHECK(predict(asked("false")).step_time < predict(asked("true")).step_time);
}

namespace {

/// A V100 node of two GPUs, then a T4 node of two, with a placement that has as many workers as it says.
Problem placed(const std::string& placement, int workers, const std::string& algorithm = "ring") {
  const std::string path = test::mixed_cluster_file("V100-SXM2-16GB", "T4");
  Problem problem =
      prepare({.model = "alexnet",
               .cluster = path,
               .strategy = "ddp",
               .workers = workers,
               .batch = 32,
               .settings = {{"placement", placement}, {"strategy.algorithm", algorithm}, {"profile", "roofline"}}});
  std::filesystem::remove(path);
  return problem;
}

std::vector<std::pair<std::string, int>> devices_of(const Cluster& cluster) {
  std::vector<std::pair<std::string, int>> out;
  for (int node = 0; node < cluster.node_count(); ++node)
    out.emplace_back(cluster.group_of(node).device, cluster.group_of(node).gpus);
  return out;
}

}  // namespace

TEST_CASE("a placement takes the nodes of a mixed cluster in their order", "[predict][placement]") {
  using Nodes = std::vector<std::pair<std::string, int>>;
  CHECK(devices_of(placed("2,1", 3).cluster) == Nodes{{"V100-SXM2-16GB", 2}, {"T4", 1}});
  CHECK(placed("2,1", 3).notes.empty());
  CHECK(devices_of(placed("1", 1).cluster) == Nodes{{"V100-SXM2-16GB", 1}});
}

TEST_CASE("a placed job uses the NICs next to its GPUs", "[predict][placement]") {
  // 8 GPUs and 8 NICs a node: with one GPU a node a ring crosses one NIC, with nearest_nics=false all 8.
  const auto request = [](const std::string& nearest) {
    return PredictRequest{
        .model = "alexnet",
        .cluster = "dgx-a100",
        .strategy = "bsp",
        .workers = 2,
        .batch = 32,
        .settings = {{"placement", "1,1"}, {"group.*.nearest_nics", nearest}, {"profile", "roofline"}}};
  };
  CHECK(prepare(request("true")).cluster.groups.front().nics == 1);
  CHECK(prepare(request("false")).cluster.groups.front().nics == 8);
  CHECK(predict(request("true")).step_time > predict(request("false")).step_time);
}

TEST_CASE("more nodes than the cluster lists are like its last, and that is told", "[predict][placement]") {
  const Problem problem = placed("1,2,2", 5);
  CHECK(devices_of(problem.cluster) ==
        std::vector<std::pair<std::string, int>>{{"V100-SXM2-16GB", 1}, {"T4", 2}, {"T4", 2}});
  CHECK(problem.notes ==
        std::vector<std::string>{"cluster 'mixed' lists 2 nodes with GPUs, 3 take part: the others are "
                                 "like its last"});
  CHECK_THROWS_WITH(placed("3,1", 4), "entry 1 of the placement asks for 3 GPUs on a node of 'mixed' that has 2");
}

TEST_CASE("a hierarchical all-reduce over unequal nodes is planned, and told, as the ring that runs",
          "[predict][collective]") {
  const auto algorithms = [](const Problem& problem) {
    std::set<CollectiveAlgorithm> used;
    for (const Op& op : problem.plan.ops)
      if (const auto* all = std::get_if<Collective>(&op.body)) used.insert(all->algorithm);
    return used;
  };
  const Problem unequal = placed("2,1", 3, "hierarchical");
  CHECK(algorithms(unequal) == std::set{CollectiveAlgorithm::Ring});
  CHECK(unequal.notes ==
        std::vector<std::string>{
            "a hierarchical all-reduce needs equal numbers of ranks on all nodes: it runs as a ring here"});
  const Problem equal = placed("2,2", 4, "hierarchical");
  CHECK(algorithms(equal) == std::set{CollectiveAlgorithm::Hierarchical});
  CHECK(equal.notes.empty());
}

TEST_CASE("no group of a grouping has a hierarchical all-reduce where one of them has unequal nodes",
          "[predict][collective]") {
  // 12 ranks on nodes of 4, 4, 3 and 1, every two of them tensor parallel: of the two groups of replicas the first has
  // two ranks on each of three nodes, the other 2, 2, 1 and 1.
  const auto asked = [](const std::string& algorithm, const std::string& solver) {
    return PredictRequest{.model = "gpt2",
                          .cluster = "p3.16xlarge",
                          .strategy = "ddp",
                          .workers = 12,
                          .settings = {{"memory", "ignore"},
                                       {"placement", "4,4,3,1"},
                                       {"strategy.tensor", "2"},
                                       {"strategy.algorithm", algorithm},
                                       {"solver", solver}}};
  };
  const auto step = [&](const std::string& algorithm, const std::string& solver) {
    return predict(asked(algorithm, solver)).step_time.value();
  };
  for (const std::string solver : {"simgrid", "native"}) {
    CHECK_THAT(step("hierarchical", solver), WithinRel(step("ring", solver), 1e-12));
    CHECK(step("best", solver) <= step("ring", solver) * (1.0 + 1e-9));
  }
  CHECK(prepare(asked("ring", "native")).notes.empty());
  CHECK(prepare(asked("hierarchical", "native")).notes ==
        std::vector<std::string>{
            "a hierarchical all-reduce needs equal numbers of ranks on all nodes: it runs as a ring here"});
}

TEST_CASE("a ring is told, too, where the cluster's library would have a hierarchical all-reduce",
          "[predict][collective]") {
  // Hybrid shard over pairs of 12 ranks on nodes of 4, 4, 3 and 1.
  const auto notes = [](const std::string& library) {
    const std::string path = (std::filesystem::temp_directory_path() / "simsync-library.yaml").string();
    write_file(
        path,
        "schema: simsync/cluster/v1\nname: four\ndescription: alike nodes\nsources: [made up]\nprecision: fp32\n"
        "links:\n  net: {bandwidth: 100Gbps, latency: 2us}\n  pcie: {bandwidth: 12GB/s, latency: 1us}\n"
        "collective: {algorithm: " +
            library +
            "}\n"
            "groups:\n  - {name: all, device: T4, gpus: 4, count: 4, nic_link: net, fabric: {pcie_link: pcie}}\n");
    const Problem problem =
        prepare({.model = "gpt2",
                 .cluster = path,
                 .strategy = "fsdp",
                 .workers = 12,
                 .settings = {{"memory", "ignore"}, {"placement", "4,4,3,1"}, {"strategy.group", "2"}}});
    std::filesystem::remove(path);
    return problem.notes;
  };
  CHECK(notes("ring").empty());
  CHECK(notes("hierarchical") ==
        std::vector<std::string>{
            "a hierarchical all-reduce needs equal numbers of ranks on all nodes: it runs as a ring here"});
}

TEST_CASE("processes that run a plan wake up by themselves", "[predict]") {
  const auto dispatches = [](const Problem& problem) {
    return std::count_if(problem.plan.ops.begin(), problem.plan.ops.end(),
                         [](const Op& op) { return op.reason.phase == Phase::Dispatch; });
  };
  const auto asked = [](const std::string& latency) {
    return prepare({.model = "alexnet",
                    .cluster = "two-nodes",
                    .strategy = "ps",
                    .workers = 2,
                    .batch = {},
                    .settings = {{"group.*.cpu.dispatch_latency", latency}}});
  };
  const Problem waits = asked("100us");
  CHECK(dispatches(waits) > 0);
  const Problem real = for_real_run(waits);
  CHECK(dispatches(real) == 0);
  CHECK(real.plan.ops.size() == asked("0us").plan.ops.size());
}

TEST_CASE("a seed reaches what workers draw, also in real runs", "[predict]") {
  const auto asked = [](const std::string& seed) {
    return prepare({.model = "alexnet",
                    .cluster = "two-nodes",
                    .strategy = "ps",
                    .workers = 2,
                    .batch = {},
                    .settings = {{"strategy.sync", "false"}, {"seed", seed}}});
  };
  const Problem problem = asked("7");
  CHECK(problem.plan.draws.seed == 7);
  const Problem real = for_real_run(problem);
  CHECK(real.plan.draws.seed == 7);
  const auto& ops = real.plan.ops;
  const auto computes = std::find_if(ops.begin(), ops.end(), [](const Op& op) { return op.kind() == OpKind::Compute; });
  CHECK(compute_time(real.plan, *computes, 1, 0) != compute_time(asked("8").plan, *computes, 1, 0));
}

TEST_CASE("workers who draw profiled steps compute their mean, those in lock step the median", "[predict]") {
  const Model model = find_model("alexnet");
  const std::string path = (std::filesystem::temp_directory_path() / "simsync-drawn-steps.csv").string();
  // Every pass of every layer takes 1, 1, 1 and 3 ms.
  std::vector<std::vector<LayerTime>> steps(3, {model.layer_count(), {Seconds{1e-3}, Seconds{1e-3}}});
  steps.emplace_back(model.layer_count(), LayerTime{Seconds{3e-3}, Seconds{3e-3}});
  save_profile(path, model,
               {.device = "V100-SXM2-16GB",
                .precision = "fp32",
                .batch = 32,
                .framework = "none",
                .source = "here",
                .note = "",
                .steps = steps});
  const auto asked = [&](const std::string& sync, const std::string& key, const std::string& value) {
    return PredictRequest{.model = "alexnet",
                          .cluster = "dgx-1",
                          .strategy = "ps",
                          .workers = 8,
                          .batch = 32,
                          .settings = {{"profile", path}, {"strategy.sync", sync}, {key, value}}};
  };
  const double layers = 2e-3 * static_cast<double>(model.layer_count());
  CHECK_THAT(predict(asked("true", "seed", "1")).compute.value(), WithinRel(layers, 1e-9));
  CHECK_THAT(predict(asked("false", "seed", "1")).compute.value(), WithinRel(1.5 * layers, 1e-9));
  for (const char* sync : {"true", "false"}) {
    // What a device alone would update is a part of its step; here the server does it.
    const PredictRequest one_second = asked(sync, "step_time", "1s");
    const PredictedRow row = predict(one_second);
    CHECK_THAT((row.compute + prepare(one_second).profile.update).value(), WithinRel(1.0, 1e-9));
    CHECK_THAT(row.scaling_efficiency * row.step_time.value(), WithinRel(1.0, 1e-9));
  }
  std::filesystem::remove(path);
  std::filesystem::remove(std::filesystem::path(path).replace_extension(".yaml"));
}

TEST_CASE("asynchronous workers of one host that wait for each other are noted", "[predict]") {
  const auto notes = [](const std::string& strategy, const std::string& sync) {
    return prepare({.model = "alexnet",
                    .cluster = "dgx-1",
                    .strategy = strategy,
                    .workers = 4,
                    .settings = {{"strategy.sync", sync}}})
        .notes;
  };
  REQUIRE(notes("ps", "false").size() == 1);
  CHECK(notes("ps", "false").front().starts_with("workers of one host sum their gradients"));
  CHECK(notes("ps", "true").empty());
  CHECK(notes("tictac", "false").empty());
}

TEST_CASE("a number of steps that has no effect is noted", "[predict]") {
  const auto notes = [](const std::string& key, const std::string& variation) {
    return prepare({.model = "alexnet",
                    .cluster = "two-nodes",
                    .strategy = "ddp",
                    .workers = 2,
                    .batch = {},
                    .settings = {{key, "100"}, {"step_variation", variation}}})
        .notes;
  };
  CHECK(notes("steps_per_worker", "0.1").empty());
  CHECK(notes("iterations", "0").empty());
  REQUIRE(notes("steps_per_worker", "0").size() == 1);
  CHECK(notes("steps_per_worker", "0").front().starts_with("steps_per_worker has no effect"));
  REQUIRE(notes("iterations", "0.1").size() == 1);
  CHECK(notes("iterations", "0.1").front().starts_with("iterations has no effect"));
}

TEST_CASE("samples of all replicas divide among them, however many ranks a replica has", "[predict]") {
  const auto asked = [](const std::string& tensor, std::int64_t samples) {
    return PredictRequest{.model = "gpt2",
                          .cluster = "dgx-a100",
                          .strategy = "ddp",
                          .workers = 16,
                          .batch = {},
                          .settings = {{"strategy.tensor", tensor}},
                          .calibration = {},
                          .global_batch = samples};
  };
  CHECK(prepare(asked("1", 64)).samples() == 4);
  CHECK(prepare(asked("4", 64)).samples() == 16);
  CHECK_THROWS_WITH(prepare(asked("2", 100)),
                    ContainsSubstring("--global-batch 100: does not divide among 8 replicas"));
  PredictRequest twice = asked("1", 64);
  twice.batch = 4;
  CHECK_THROWS_AS(prepare(twice), InputError);
}

TEST_CASE("a step with backup workers counts the gradients that it takes", "[predict]") {
  const auto asked = [](const std::string& backups) {
    return PredictRequest{.model = "alexnet",
                          .cluster = "two-nodes",
                          .strategy = "ps",
                          .workers = 4,
                          .batch = 10,
                          .settings = {{"strategy.backups", backups}}};
  };
  const PredictedRow all = predict(asked("0"));
  const PredictedRow three = predict(asked("1"));
  CHECK(three.mode == "backup");
  CHECK_THAT(all.throughput(), WithinRel(40.0 / all.step_time.value(), 1e-12));
  CHECK_THAT(three.throughput(), WithinRel(30.0 / three.step_time.value(), 1e-12));
  CHECK_THAT(three.throughput() / all.throughput(), WithinRel(three.scaling_efficiency / all.scaling_efficiency, 1e-9));
  CHECK(all.dropped_pct == 0.0);
  CHECK(three.dropped_pct > 0.0);
  CHECK(for_real_run(prepare(asked("1"))).plan.progress.backups == 1);
}

TEST_CASE("settings in one text are sorted, and the last of a key counts", "[predict]") {
  CHECK(settings_text({}).empty());
  CHECK(settings_text({{"seed", "2"}, {"fidelity", "steps"}, {"seed", "3"}}) == "fidelity=steps;seed=3");
}

TEST_CASE("inputs that were read before answer as fresh ones do", "[predict]") {
  const PredictRequest plain{
      .model = "resnet50", .cluster = "dgx-1", .strategy = "ddp", .workers = 16, .batch = {}, .settings = {}};
  PredictRequest scaled = plain;
  scaled.settings = {{"step_time", "100ms"}, {"device.V100-SXM2-16GB.launch", "7us"}};
  Inputs inputs;
  for (const auto& request : {plain, scaled, plain, scaled})
    CHECK(row_cells(predict(request, inputs)) == row_cells(predict(request)));
}

namespace {

/// A calibration in a file of its own, gone with this.
class CalibrationFile {
public:
  CalibrationFile(const std::string& cluster, const std::string& rest)
      : path_((std::filesystem::temp_directory_path() / "simsync-interval.yaml").string()) {
    write_file(path_, "schema: simsync/calibration/v1\ncluster: " + cluster + "\ndate: 2026-01-31\nrows: 9\n" + rest);
  }
  CalibrationFile(const CalibrationFile&) = delete;
  CalibrationFile& operator=(const CalibrationFile&) = delete;
  ~CalibrationFile() { std::filesystem::remove(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }

private:
  std::string path_;
};

std::string one_parameter(const std::string& key, const std::string& rest) {
  return "parameters:\n  - {key: " + key + ", " + rest + "}\n";
}

/// log(step) with the settings.
double log_step(PredictRequest request, const std::vector<std::pair<std::string, std::string>>& settings) {
  request.calibration.clear();
  request.settings = settings;
  return std::log(predict(request).step_time.value());
}

/// How far the step may be off, in standard deviations of its logarithm, by the parameters alone; both ways must agree.
double deviation_of(PredictRequest request, const CalibrationFile& calibration) {
  request.calibration = calibration.path();
  for (const char* known : {"compute_error", "network_error", "collective.interference"})
    request.settings.emplace_back(known, "0");
  const PredictedRow row = predict(request);
  const double above = std::log(row.step_high / row.step_time) / kNormal90;
  CHECK_THAT(std::log(row.step_time / row.step_low) / kNormal90, WithinRel(above, 1e-9) || WithinAbs(above, 1e-12));
  return above;
}

}  // namespace

TEST_CASE("a calibration's covariance becomes an interval of the step", "[engine][calibration]") {
  // One parameter, 10 % uncertain, no residual: the step moves from T(-10 %) to T(+10 %), and half of that on a
  // logarithmic axis is one standard deviation.
  const std::string key = "link.infiniband.efficiency";
  PredictRequest request{.model = "vgg16", .cluster = "dgx-1", .strategy = "ddp", .workers = 16};
  const auto with = [&](double efficiency) { return log_step(request, {{key, std::to_string(efficiency)}}); };
  const double expected = 0.5 * (with(0.5 * std::exp(-0.1)) - with(0.5 * std::exp(0.1)));
  REQUIRE(expected > 0.0);
  const CalibrationFile uncertain("dgx-1", one_parameter(key, "value: 0.5, scale: log, deviation: 0.1"));
  CHECK_THAT(deviation_of(request, uncertain), WithinRel(expected, 1e-3));
  // What the user sets is known.
  request.settings = {{key, "0.5"}};
  CHECK(deviation_of(request, uncertain) == 0.0);
}

TEST_CASE("a number that is known for certain widens nothing", "[engine][calibration]") {
  const PredictRequest request{.model = "vgg16", .cluster = "dgx-1", .strategy = "ddp", .workers = 16};
  const std::string exact = one_parameter("link.infiniband.efficiency", "value: 0.5, scale: log, deviation: 0");
  CHECK(deviation_of(request, CalibrationFile("dgx-1", exact)) == 0.0);
}

TEST_CASE("runs of the same that are 2 % apart widen every step by that", "[engine][calibration]") {
  const PredictRequest request{.model = "vgg16", .cluster = "dgx-1", .strategy = "ddp", .workers = 16};
  const std::string exact = one_parameter("link.infiniband.efficiency", "value: 0.5, scale: log, deviation: 0");
  CHECK_THAT(deviation_of(request, CalibrationFile("dgx-1", exact + "repeat_pct: 2\n")), WithinRel(0.02, 1e-6));
}

TEST_CASE("where a range ends, the other side tells how much a number matters", "[engine][calibration]") {
  // 0.95 + 0.1 is no efficiency: log T(0.85) - log T(0.95) is one standard deviation.
  const std::string key = "link.infiniband.efficiency";
  const PredictRequest request{.model = "vgg16", .cluster = "dgx-1", .strategy = "ddp", .workers = 16};
  const double expected = log_step(request, {{key, "0.85"}}) - log_step(request, {{key, "0.95"}});
  REQUIRE(expected > 0.0);
  const CalibrationFile near_one("dgx-1", one_parameter(key, "value: 0.95, scale: linear, deviation: 0.1"));
  CHECK_THAT(deviation_of(request, near_one), WithinRel(expected, 1e-3));
}

TEST_CASE("a number of every group is uncertain in every group", "[engine][calibration]") {
  // Two hosts of different groups serve: what the interval moves is both of them, as two settings do.
  const std::string cluster = test::mixed_cluster_file("T4", "T4");
  const PredictRequest request{
      .model = "resnet50", .cluster = cluster, .strategy = "partitioned-ps", .workers = 4, .settings = {}};
  const auto with = [&](double cost, bool a, bool b) {
    const std::string moved = std::to_string(cost) + "ms";
    return log_step(request, {{"group.first.cpu.per_tensor", a ? moved : "10ms"},
                              {"group.second.cpu.per_tensor", b ? moved : "10ms"}});
  };
  const double down = std::exp(-0.2);
  const double up = std::exp(0.2);
  const double expected = 0.5 * (with(10.0 * up, true, true) - with(10.0 * down, true, true));
  REQUIRE(expected > 1.05 * 0.5 * (with(10.0 * up, true, false) - with(10.0 * down, true, false)));
  REQUIRE(expected > 1.05 * 0.5 * (with(10.0 * up, false, true) - with(10.0 * down, false, true)));
  const CalibrationFile every("mixed",
                              one_parameter("group.*.cpu.per_tensor", "value: 10ms, scale: log, deviation: 0.2"));
  CHECK_THAT(deviation_of(request, every), WithinRel(expected, 1e-3));
  PredictRequest fitted = request;
  fitted.calibration = every.path();
  CHECK_THAT(std::log(predict(fitted).step_time.value()), WithinRel(with(10.0, true, true), 1e-9));
  std::filesystem::remove(cluster);
}

TEST_CASE("the residual of a fit counts for the exposed communication alone", "[engine][calibration]") {
  // Compute comes from the profile, not from the fit: all that is not compute takes e^(1.6449 x 0.1) times as long.
  PredictRequest request{.model = "vgg16", .cluster = "two-nodes", .strategy = "bsp", .workers = 8};
  const CalibrationFile calibration(
      "two-nodes", "residuals: {rms_pct: 10, median_pct: 0, worst_pct: 20}\n" +
                       one_parameter("link.ethernet.efficiency", "value: 0.9, scale: log, deviation: 0"));
  request.calibration = calibration.path();
  request.settings = {{"compute_error", "0"}, {"collective.interference", "0"}, {"device.T4.compute_variation", "0"}};
  const PredictedRow row = predict(request);
  const double exposed = row.exposed_comm / row.step_time;
  REQUIRE(exposed > 0.1);
  REQUIRE(exposed < 0.9);
  const double longer = std::exp(kNormal90 * 0.1);
  CHECK_THAT(row.step_high / row.step_time, WithinRel(1.0 + (longer - 1.0) * exposed, 1e-3));
  CHECK_THAT(row.step_low / row.step_time, WithinRel(1.0 + (1.0 / longer - 1.0) * exposed, 1e-3));
}
