// Fits on presets that lack what others have: a network, or the links of another cluster's calibration.
#include <algorithm>
#include <cmath>

#include "platforms/reader.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/calibrate_support.hpp"
#include "validate/calibrate/calibrate.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

/// All-reduces of 1 KiB to 64 MiB by the cluster's own numbers.
std::vector<Probe> all_reduces(const Cluster& cluster, int ranks, int per_node) {
  std::vector<Probe> out;
  for (double bytes = 1024.0; bytes <= 64.0 * 1024.0 * 1024.0; bytes *= 4.0) {
    out.push_back(probe(ProbeKind::AllReduce, ranks, bytes));
    out.back().per_node = per_node;
  }
  return measured_on(cluster, std::move(out), 0.01);
}

Calibration fitted_to_dgx_a100() {
  const Cluster cluster = find_cluster("dgx-a100");
  std::vector<Probe> probes = all_reduces(cluster, 4, 4);
  const auto eight = all_reduces(cluster, 8, 8);
  probes.insert(probes.end(), eight.begin(), eight.end());
  return calibrate(cluster, probes, {.date = "2026-01-31"}).calibration;
}

}  // namespace

TEST_CASE("collectives on machines without a network are fitted", "[calibrate]") {
  const auto* const name =
      GENERATE("a100-pcie-pair", "a40-pcie4-shm", "rtx3090-pair", "rtx4090-pair", "rtx6000-quad", "rtxa6000-pair");
  CAPTURE(name);
  const Cluster cluster = find_cluster(name);
  REQUIRE(cluster.groups.front().nic_link.empty());
  const auto result = calibrate(cluster, all_reduces(cluster, 2, 2), {.date = "2026-01-31"});
  CHECK(result.calibration.residuals.rms_pct < 2.0);
}

TEST_CASE("messages inside a machine without a network are fitted", "[calibrate]") {
  const Cluster cluster = find_cluster("a100-pcie-pair");
  std::vector<Probe> probes;
  for (const double bytes : {1e3, 1e5, 1e7}) probes.push_back(probe(ProbeKind::Message, 2, bytes));
  const auto result = calibrate(cluster, measured_on(cluster, probes), {.date = "2026-01-31"});
  CHECK(result.calibration.residuals.rms_pct < 0.1);
}

TEST_CASE("a prior that knows none of the parameters leaves the fit as it is, with a note", "[calibrate]") {
  const Calibration prior = fitted_to_dgx_a100();
  const auto* const name = GENERATE("dgx-1", "polaris", "polaris-tcp", "alps-gh200");
  CAPTURE(name);
  const Cluster cluster = find_cluster(name);
  const auto probes = all_reduces(cluster, 2, 1);
  CalibrateOptions options{.date = "2026-01-31"};
  options.unknowns = {{"link." + cluster.groups.front().nic_link + ".efficiency", Dimension::Number, 0.02, 1.0, true},
                      {"collective.per_step_inter", Dimension::Time, 1e-7, 0.01, true}};
  const auto without = calibrate(cluster, probes, options);
  options.prior = prior;
  const auto with = calibrate(cluster, probes, options);
  CHECK(with.calibration.parameters == without.calibration.parameters);
  REQUIRE(with.notes.size() == without.notes.size() + 1);
  CHECK(with.notes.front() ==
        "the prior, for cluster 'dgx-a100', knows none of these parameters and was not used: its links have other "
        "names, or other measurements made it");
}

TEST_CASE("a prior of another cluster beside measurements of several nodes", "[calibrate]") {
  const Calibration prior = fitted_to_dgx_a100();
  const auto* const name = GENERATE("dgx-1", "polaris", "alps-gh200");
  CAPTURE(name);
  const Cluster cluster = find_cluster(name);
  CalibrateOptions options{.date = "2026-01-31"};
  options.prior = prior;
  const auto result = calibrate(cluster, all_reduces(cluster, 2, 1), options);
  CHECK(result.calibration.residuals.rms_pct < 5.0);
}
