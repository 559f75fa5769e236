// What fitted numbers leave of measured collectives: when it is kept, and what the engine makes of it.
#include <cmath>

#include "base/random.hpp"
#include "platforms/reader.hpp"
#include "sim/engine/engine.hpp"
#include "sim/plan/compile.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab.hpp"
#include "validate/calibrate/calibrate.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

/// Two hosts with two devices each; a round between hosts costs 20 us.
Cluster two_hosts() {
  Cluster cluster = lab_cluster(2, 2, {.nic = 1e9, .nic_latency = 10e-6, .port = 1e10, .port_latency = 1e-6});
  cluster.collective.launch = Seconds{10e-6};
  cluster.collective.per_step_inter = Seconds{20e-6};
  return cluster;
}

/// All-reduces of 1 KiB to 16 MiB over all four devices, `times(bytes)` times as long as the cluster says.
template <typename Times>
std::vector<Probe> all_reduces(const Cluster& cluster, Times times) {
  std::vector<Probe> out;
  for (double bytes = 1024.0; bytes <= 16.0 * 1024.0 * 1024.0; bytes *= 2.0) {
    Probe probe{.kind = ProbeKind::AllReduce, .ranks = 4, .per_node = 2, .bytes = bytes, .measured = {}, .where = {}};
    probe.measured = times(bytes) * predicted_time(probe, cluster);
    out.push_back(probe);
  }
  return out;
}

CalibrateOptions only_the_round() {
  CalibrateOptions options;
  options.unknowns = {{"collective.per_step_inter", Dimension::Time, 1e-6, 1e-3, true}};
  options.date = "2026-11-20";
  return options;
}

}  // namespace

TEST_CASE("a hump that no cost explains is kept, and found between the measured sizes", "[ratios][calibrate]") {
  const Cluster cluster = two_hosts();
  const auto hump = [](double bytes) { return 1.0 + 4.0 * std::exp(-std::pow(std::log2(bytes / 65536.0) / 2.0, 2.0)); };
  const auto all = all_reduces(cluster, hump);
  std::vector<Probe> fitted;
  std::vector<Probe> between;
  for (std::size_t i = 0; i < all.size(); ++i) (i % 2 == 0 ? fitted : between).push_back(all[i]);
  const CalibrationResult result = calibrate(cluster, fitted, only_the_round());
  REQUIRE(result.calibration.measured.size() == 1);
  CHECK(result.calibration.measured[0].points.size() == fitted.size());
  Cluster calibrated = cluster;
  apply(calibrated, result.calibration);
  const double with = residuals_of(predict_rows(calibrated, between)).worst_pct;
  calibrated.collective.measured.clear();
  const double without = residuals_of(predict_rows(calibrated, between)).worst_pct;
  CHECK(with < 15.0);
  CHECK(without > 50.0);
}

TEST_CASE("noise is not kept: the other sizes do not tell the one that is left out", "[ratios][calibrate]") {
  const Cluster cluster = two_hosts();
  Random random(7);
  const auto noise = [&](double) { return 0.97 + 0.06 * random.unit(); };
  CHECK(calibrate(cluster, all_reduces(cluster, noise), only_the_round()).calibration.measured.empty());
}

TEST_CASE("a stretched collective takes so many times as long whether every message is simulated or not",
          "[ratios][engine]") {
  Cluster cluster = two_hosts();
  cluster.links["nic"].half_size = Bytes{512};
  cluster.collective.payload_rate = BytesPerSecond{1e10};
  const auto time_of = [&](CollectiveAlgorithm algorithm, Fidelity fidelity) {
    const Plan plan =
        collective_plan(cluster, cluster.workers(4), CollectivePrimitive::AllReduce, algorithm, 1024.0 * 1024.0);
    return replay(plan, cluster, {.fidelity = fidelity, .max_iterations = 1}).step;
  };
  for (const auto algorithm : {CollectiveAlgorithm::Ring, CollectiveAlgorithm::DoubleBinaryTree}) {
    for (const auto fidelity : {Fidelity::Fluid, Fidelity::Steps}) {
      cluster.collective.measured.clear();
      const Seconds alone = time_of(algorithm, fidelity);
      cluster.collective.measured = {
          {.primitive = "all-reduce", .nodes = 2, .ranks = 4, .points = {{Bytes{1024}, 1.5}}}};
      // The engine counts whole bytes.
      CHECK_THAT(time_of(algorithm, fidelity) / alone, WithinRel(1.5, 1e-6));
    }
  }
}

TEST_CASE("an algorithm that the library would not choose by itself is not stretched", "[ratios][engine]") {
  Cluster cluster = two_hosts();
  const auto ratio = [&](CollectiveAlgorithm algorithm) {
    return collective_plan(cluster, cluster.workers(4), CollectivePrimitive::AllReduce, algorithm, 4096.0)
        .ops.at(0)
        .collective()
        .ratio;
  };
  cluster.collective.measured = {{.primitive = "all-reduce", .nodes = 2, .ranks = 4, .points = {{Bytes{1024}, 1.5}}}};
  CHECK(ratio(CollectiveAlgorithm::Auto) == 1.5);
  CHECK(ratio(CollectiveAlgorithm::HalvingDoubling) == 1.0);
  cluster.collective.algorithm = "halving-doubling";
  CHECK(ratio(CollectiveAlgorithm::HalvingDoubling) == 1.5);
  CHECK(ratio(CollectiveAlgorithm::Ring) == 1.0);
}
