// Ratios of measured collectives: which one speaks for a size and a group, and how they are read and written.
#include "platforms/measured_ratios.hpp"

#include "platforms/calibration.hpp"
#include "platforms/reader.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/error_of.hpp"

using namespace simsync;
using simsync::test::error_of;

namespace {

MeasuredRatios group(int nodes, int ranks, double ratio) {
  return {.primitive = "all-reduce", .nodes = nodes, .ranks = ranks, .points = {{Bytes{1024}, ratio}}};
}

const std::vector<MeasuredRatios> kLine{
    {.primitive = "all-reduce", .nodes = 2, .ranks = 8, .points = {{Bytes{1024}, 2.0}, {Bytes{4096}, 8.0}}}};

std::string calibration_with(const std::string& measured) {
  return "schema: simsync/calibration/v1\ncluster: alps-gh200\ndate: 2026-11-20\nrows: 3\nparameters: []\nmeasured:\n" +
         measured;
}

struct Case {
  const char* text;
  const char* expected;
};

}  // namespace

TEST_CASE("between sizes a ratio lies on a straight line of logarithms, beyond them it stays", "[ratios]") {
  CHECK_THAT(measured_ratio(kLine, "all-reduce", 2, 8, 2048.0), WithinRel(4.0, 1e-12));
  CHECK(measured_ratio(kLine, "all-reduce", 2, 8, 1024.0) == 2.0);
  CHECK(measured_ratio(kLine, "all-reduce", 2, 8, 1.0) == 2.0);
  CHECK(measured_ratio(kLine, "all-reduce", 2, 8, 1e9) == 8.0);
}

TEST_CASE("a group speaks for others on several nodes, the nearest one first", "[ratios]") {
  const std::vector<MeasuredRatios> measured{group(1, 4, 1.5), group(2, 8, 2.0), group(8, 32, 3.0)};
  const auto at = [&](int nodes, int ranks) { return measured_ratio(measured, "all-reduce", nodes, ranks, 4096.0); };
  CHECK(at(8, 32) == 3.0);
  CHECK(at(32, 128) == 3.0);
  CHECK(at(3, 12) == 2.0);
  CHECK(at(4, 16) == 2.0);  // as far from 2 as from 8
  CHECK(at(1, 4) == 1.5);
  CHECK(at(1, 3) == 1.0);  // inside a node, other numbers of ranks are other wires
  CHECK(at(2, 4) == 1.0);  // other numbers of ranks on a node
  CHECK(measured_ratio(measured, "all-gather", 2, 8, 4096.0) == 1.0);
}

TEST_CASE("ratios of a cluster and of a calibration read back", "[ratios]") {
  Cluster cluster = find_cluster("alps-gh200");
  cluster.collective.measured = kLine;
  CHECK(parse_cluster(to_yaml(cluster), "c.yaml") == cluster);
  Calibration calibration = parse_calibration(
      calibration_with("  - {primitive: all-gather, nodes: 1, ranks: 4, payload: [8B, 1KiB], ratio: [0.5, 1.25]}\n"),
      "c.yaml");
  REQUIRE(calibration.measured.size() == 1);
  CHECK(calibration.measured[0].points == std::vector<std::pair<Bytes, double>>{{Bytes{8}, 0.5}, {Bytes{1024}, 1.25}});
  CHECK(parse_calibration(to_yaml(calibration), "c.yaml") == calibration);
  apply(cluster, calibration);
  CHECK(cluster.collective.measured == calibration.measured);
}

TEST_CASE("a calibration of other things leaves a cluster's ratios", "[ratios]") {
  const auto left_by = [](const std::string& parameter) {
    Cluster cluster = find_cluster("alps-gh200");
    cluster.collective.measured = kLine;
    apply(cluster, parse_calibration("schema: simsync/calibration/v1\ncluster: alps-gh200\ndate: 2026-11-20\nrows: 3\n"
                                     "parameters:\n  - {key: " +
                                         parameter + ", scale: linear, deviation: 0}\n",
                                     "c.yaml"));
    return cluster.collective.measured.size();
  };
  CHECK(left_by("collective.interference, value: 0.05") == 1);
  CHECK(left_by("group.node.cpu.per_tensor, value: 20us") == 1);
  CHECK(left_by("collective.launch, value: 20us") == 0);
  CHECK(left_by("link.slingshot.efficiency, value: 0.9") == 0);
}

TEST_CASE("mistakes in ratios are told with their place", "[ratios]") {
  const Case cases[] = {
      {"  - {primitive: allreduce, nodes: 1, ranks: 4, payload: [8B], ratio: [1]}\n",
       R"(c.yaml:7:17: error: 'allreduce' is not one of all-reduce, all-gather, reduce-scatter
    7 |   - {primitive: allreduce, nodes: 1, ranks: 4, payload: [8B], ratio: [1]}
      |                 ^
  key:  measured[0].primitive
  help: did you mean 'all-reduce'?)"},
      {"  - {primitive: all-reduce, nodes: 2, ranks: 5, payload: [8B], ratio: [1]}\n",
       R"(c.yaml:7:46: error: 5 ranks are not alike on 2 nodes
    7 |   - {primitive: all-reduce, nodes: 2, ranks: 5, payload: [8B], ratio: [1]}
      |                                              ^
  key:  measured[0].ranks)"},
      {"  - {primitive: all-reduce, nodes: 2, ranks: 4, payload: [1KiB, 8B], ratio: [1, 2]}\n",
       R"(c.yaml:7:65: error: expected sizes in ascending order
    7 |   - {primitive: all-reduce, nodes: 2, ranks: 4, payload: [1KiB, 8B], ratio: [1, 2]}
      |                                                                 ^
  key:  measured[0].payload[1])"},
      {"  - {primitive: all-reduce, nodes: 2, ranks: 4, payload: [8B], ratio: [1, 2]}\n",
       R"(c.yaml:7:71: error: expected a ratio for each of the 1 sizes, got 2
    7 |   - {primitive: all-reduce, nodes: 2, ranks: 4, payload: [8B], ratio: [1, 2]}
      |                                                                       ^
  key:  measured[0].ratio)"},
      {"  - {primitive: all-reduce, nodes: 2, ranks: 4, payload: [8B], ratio: [0]}\n",
       R"(c.yaml:7:72: error: 0 is out of range: expected from 0.001 to 1000
    7 |   - {primitive: all-reduce, nodes: 2, ranks: 4, payload: [8B], ratio: [0]}
      |                                                                        ^
  key:  measured[0].ratio[0])"},
      {"  - {primitive: all-reduce, nodes: 1, ranks: 4, payload: [8B], ratio: [1]}\n"
       "  - {primitive: all-reduce, nodes: 1, ranks: 4, payload: [9B], ratio: [1]}\n",
       R"(c.yaml:8:5: error: a second list for all-reduce of 4 ranks on 1 nodes
    8 |   - {primitive: all-reduce, nodes: 1, ranks: 4, payload: [9B], ratio: [1]}
      |     ^
  key:  measured[1])"},
  };
  for (const auto& [text, expected] : cases)
    CHECK(error_of([&, &text = text] { (void)parse_calibration(calibration_with(text), "c.yaml"); }) == expected);
}
