#include "sim/engine/predict.hpp"

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
