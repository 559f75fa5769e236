#include "sim/engine/predict.hpp"

#include <cmath>
#include <filesystem>
#include <set>

#include "base/file.hpp"
#include "models/reader.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

/// Two nodes of two GPUs each, on one network.
std::string cluster_file(const std::string& first, const std::string& second) {
  const auto group = [](const std::string& name, const std::string& device) {
    return "  - {name: " + name + ", device: " + device +
           ", gpus: 2, count: 1, nic_link: net, fabric: {pcie_link: pcie}}\n";
  };
  const std::string path =
      (std::filesystem::temp_directory_path() / ("simsync-" + first + "-" + second + ".yaml")).string();
  write_file(path,
             "schema: simsync/cluster/v1\nname: mixed\ndescription: two devices\nsources: [made up]\nprecision: fp32\n"
             "links:\n  net: {bandwidth: 100Gbps, latency: 2us}\n  pcie: {bandwidth: 12GB/s, latency: 1us}\n"
             "groups:\n" +
                 group("first", first) + group("second", second));
  return path;
}

double compute_of(const std::string& first, const std::string& second) {
  const std::string path = cluster_file(first, second);
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
      if (op.kind == OpKind::Collective && op.primitive == primitive) sum += op.bytes;
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
  const std::string path = cluster_file("V100-SXM2-16GB", "T4");
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
      if (op.kind == OpKind::Collective) used.insert(op.algorithm);
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

TEST_CASE("a calibration's covariance becomes an interval of the step", "[engine][calibration]") {
  // One parameter, 10 % uncertain, no residual: the step moves from T(-10 %) to T(+10 %), half of that on a logarithmic
  // axis is one standard deviation, and 1.6449 of them on each side hold 90 %.
  const std::string path = (std::filesystem::temp_directory_path() / "simsync-interval.yaml").string();
  const auto calibration = [&](const std::string& deviation) {
    write_file(path,
               "schema: simsync/calibration/v1\ncluster: dgx-1\ndate: 2026-01-31\nrows: 9\nparameters:\n"
               "  - {key: link.infiniband.efficiency, value: 0.5, scale: log, deviation: " +
                   deviation + "}\n");
  };
  PredictRequest request{.model = "vgg16", .cluster = "dgx-1", .strategy = "ddp", .workers = 16};
  const auto with = [&](double efficiency) {
    PredictRequest moved = request;
    moved.settings = {{"link.infiniband.efficiency", std::to_string(efficiency)}};
    return std::log(predict(moved).step_time.value());
  };
  const double deviation = 0.5 * (with(0.5 * std::exp(-0.1)) - with(0.5 * std::exp(0.1)));
  REQUIRE(deviation > 0.0);
  request.calibration = path;
  calibration("0.1");
  const PredictedRow row = predict(request);
  CHECK_THAT(std::log(row.step_time.value()), WithinRel(with(0.5), 1e-6));
  CHECK_THAT(std::log(row.step_high / row.step_time), WithinRel(1.6449 * deviation, 1e-3));
  CHECK_THAT(std::log(row.step_time / row.step_low), WithinRel(1.6449 * deviation, 1e-3));
  calibration("0");
  const PredictedRow exact = predict(request);
  CHECK(exact.step_low == exact.step_time);
  // What the user sets is known.
  calibration("0.1");
  request.settings = {{"link.infiniband.efficiency", "0.5"}};
  const PredictedRow known = predict(request);
  CHECK(known.step_high == known.step_time);
  std::filesystem::remove(path);
}
