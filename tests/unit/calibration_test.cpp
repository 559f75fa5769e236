// Calibrations as values, as files and laid over a cluster.
#include "platforms/calibration.hpp"

#include <cmath>

#include "base/error.hpp"
#include "platforms/reader.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/error_of.hpp"

using namespace simsync;
using simsync::test::error_of;

namespace {

constexpr const char* kGood = R"(schema: simsync/calibration/v1
cluster: dgx-a100
date: 2026-11-20
sources:
  - "nccl-tests on one node"
rows: 30
residuals: {rms_pct: 3.5, median_pct: 2, worst_pct: 9}
repeat_pct: 1.25
assumed:
  collective.protocols.ll128.overlap: true
parameters:
  - {key: collective.launch, value: 3.3e-05s, scale: log, deviation: 0.05}
  - {key: link.nvlink3.efficiency, value: 0.9, scale: linear, deviation: 0.02}
  - {key: collective.protocols.ll128.per_step_intra, value: 4e-06s, scale: log, deviation: 0.1}
correlation:
  - [1]
  - [0.5, 1]
  - [-0.25, 0, 1]
)";

std::string edited(const std::string& from, const std::string& to) {
  std::string text = kGood;
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

struct Case {
  const char* from;
  const char* to;
  const char* expected;
};

const Case kCases[] = {
    {"calibration/v1", "calibration/v2",
     R"(c.yaml:1:9: error: 'simsync/calibration/v2' is not one of simsync/calibration/v1
    1 | schema: simsync/calibration/v2
      |         ^
  key:  schema
  help: did you mean 'simsync/calibration/v1'?)"},
    {"2026-11-20", "20.11.2026",
     R"(c.yaml:3:7: error: expected a date such as 2026-01-31, got '20.11.2026'
    3 | date: 20.11.2026
      |       ^
  key:  date)"},
    {"rows: 30", "row: 30",
     R"(c.yaml:1:1: error: missing key 'rows'
    1 | schema: simsync/calibration/v1
      | ^
c.yaml:6:1: error: unknown key 'row'
    6 | row: 30
      | ^
  key:  row
  help: did you mean 'rows'?)"},
    {"value: 0.9,", "value: fast,",
     R"(c.yaml:13:43: error: expected a number with its unit, such as 8Gbps, 20us, 64KiB or 0.95, got 'fast'
   13 |   - {key: link.nvlink3.efficiency, value: fast, scale: linear, deviation: 0.02}
      |                                           ^
  key:  parameters[1].value)"},
    {"deviation: 0.05", "deviation: -1",
     R"(c.yaml:12:70: error: -1 is out of range: expected from 0 to 1e+15
   12 |   - {key: collective.launch, value: 3.3e-05s, scale: log, deviation: -1}
      |                                                                      ^
  key:  parameters[0].deviation)"},
    {"link.nvlink3.efficiency", "collective.launch",
     R"(c.yaml:13:5: error: a second value for 'collective.launch'
   13 |   - {key: collective.launch, value: 0.9, scale: linear, deviation: 0.02}
      |     ^
  key:  parameters[1])"},
    {"[0.5, 1]", "[0.5]",
     R"(c.yaml:17:5: error: expected 2 numbers (parameter 2 with those up to itself), got 1
   17 |   - [0.5]
      |     ^
  key:  correlation[1])"},
    {"[0.5, 1]\n  - [-0.25, 0, 1]", "[0.9, 1]\n  - [0.9, -0.9, 1]",
     R"(c.yaml:16:3: error: no set of quantities has these correlations: a variance would be negative
   16 |   - [1]
      |   ^
  key:  correlation)"},
};

}  // namespace

TEST_CASE("a calibration survives a round trip", "[platforms][calibration]") {
  const Calibration calibration = parse_calibration(kGood, "c.yaml");
  CHECK(calibration.cluster == "dgx-a100");
  CHECK(calibration.rows == 30);
  CHECK(calibration.residuals.worst_pct == 9.0);
  CHECK(calibration.repeat_pct == 1.25);
  REQUIRE(calibration.parameters.size() == 3);
  CHECK(calibration.parameters[0].value == 33e-6);
  CHECK_THAT(calibration.covariance(0, 1), WithinRel(0.5 * 0.05 * 0.02, 1e-12));
  CHECK_THAT(calibration.covariance(2, 0), WithinRel(-0.25 * 0.1 * 0.05, 1e-12));
  CHECK(to_yaml(calibration) == kGood);
  CHECK(parse_calibration(to_yaml(calibration), "again.yaml") == calibration);
}

TEST_CASE("texts and numbers of any kind survive the round trip of a calibration", "[platforms][calibration]") {
  Calibration one = parse_calibration(kGood, "c.yaml");
  one.cluster = "rack: 4, row #2";
  one.assumed = {{"link.a b.per_flow_cap", "none"}, {"collective.algorithm", "null"}, {"x", "- 1: [y"}};
  one.parameters[0].value = 80 * 1e-6;  // not the number nearest to 8e-05
  CHECK(parse_calibration(to_yaml(one), "again.yaml") == one);
}

TEST_CASE("a parameter moves on its own axis", "[platforms][calibration]") {
  const Calibration calibration = parse_calibration(kGood, "c.yaml");
  CHECK_THAT(calibration.parameters[0].moved(std::log(2.0)), WithinRel(66e-6, 1e-12));
  CHECK_THAT(calibration.parameters[1].moved(0.05), WithinRel(0.95, 1e-12));
}

TEST_CASE("a calibration lies over a cluster and brings its own protocols", "[platforms][calibration]") {
  Cluster cluster = find_cluster("dgx-a100");
  apply(cluster, parse_calibration(kGood, "c.yaml"));
  CHECK_THAT(cluster.collective.launch.value(), WithinRel(33e-6, 1e-12));
  CHECK(cluster.links.at("nvlink3").efficiency == 0.9);
  REQUIRE(cluster.collective.protocols.size() == 1);
  CHECK(cluster.collective.protocols.at("ll128").overlap);
  CHECK_THAT(cluster.collective.protocols.at("ll128").per_step_intra.value(), WithinRel(4e-6, 1e-12));
}

TEST_CASE("a calibration that does not fit names what is missing", "[platforms][calibration]") {
  Cluster cluster = find_cluster("g4dn.12xlarge");
  const Cluster before = cluster;
  CHECK(error_of([&] { apply(cluster, parse_calibration(kGood, "c.yaml")); }) ==
        R"(error: c.yaml: cluster 'g4dn.12xlarge' has no parameter 'link.nvlink3.efficiency'
  note: it was fitted for cluster 'dgx-a100', not for 'g4dn.12xlarge'
  help: did you mean 'link.pcie3.efficiency'?)");
  CHECK(cluster == before);
}

TEST_CASE("every mistake in a calibration file has its text", "[platforms][calibration]") {
  for (const Case& one : kCases) {
    INFO(one.to);
    CHECK(error_of([&] { (void)parse_calibration(edited(one.from, one.to), "c.yaml"); }) == one.expected);
  }
}
