#include "sim/engine/predict.hpp"

#include <cmath>
#include <filesystem>

#include "base/file.hpp"
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
