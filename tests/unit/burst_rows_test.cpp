// Rows that a token bucket passed above its rate.
#include "platforms/reader.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab.hpp"
#include "tests/unit/calibrate_support.hpp"
#include "validate/calibrate/calibrate.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

/// 125 MB/s, of which payload reaches 95 %, and 20 us; a bucket of 16 kB passes at once.
Cluster shaped() {
  Cluster cluster = lab_cluster(2, 1, {.nic = 125e6, .nic_latency = 20e-6});
  cluster.links["nic"].efficiency = 0.95;
  cluster.links["nic"].service.burst = Bytes{16'000};
  return cluster;
}

std::vector<Probe> messages_on(const Cluster& cluster) {
  std::vector<Probe> out;
  for (const double bytes : {1e3, 4e3, 16e3, 64e3, 256e3, 1e6, 4e6, 16e6, 32e6}) {
    out.push_back(probe(ProbeKind::Message, 2, bytes));
    out.back().per_node = 1;
  }
  return measured_on(cluster, std::move(out), 0.002);
}

}  // namespace

TEST_CASE("messages that a token bucket passed are set apart where the cluster states none", "[calibrate]") {
  // At 125 MB/s 4, 16 and 64 kB take 32, 128 and 512 us; the bucket passes them in 20, 20 and 424 us. 1 kB takes 8 us
  // and arrives after 20, 256 kB take 2,048 us and arrive after 2,040: within what may be rounding.
  Cluster cluster = shaped();
  const auto probes = messages_on(cluster);
  cluster.links["nic"].service.burst = Bytes{0};
  const auto result = calibrate(cluster, probes, {.date = "2026-01-31"});
  REQUIRE(result.left_out.size() == 3);
  CHECK(result.left_out.front().probe.bytes == 4e3);
  CHECK(result.left_out.back().probe.bytes == 64e3);
  CHECK(result.calibration.rows == 6);
  CHECK(result.notes.back() ==
        "3 measurements of up to 62.5 KiB are faster than their links: token buckets pass bytes above the rate after a "
        "pause. They were not fitted; with the 'burst' of the link stated they are");
  // The bucket's 16 kB are missing from larger rows, too: 6.25, 1.6, 0.4, 0.1 and 0.05 % of them, 1.68 on average.
  CHECK_THAT(value_of(result.calibration, "link.nic.efficiency"), WithinRel(0.95, 0.0168));
  // All rows are fitted where a bucket is stated: one of 1 B explains none of them.
  const auto all = calibrate(cluster, probes, {.assumed = {{"link.nic.burst", "1B"}}, .date = "2026-01-31"});
  CHECK(all.left_out.empty());
  CHECK(all.calibration.residuals.rms_pct > 5.0 * result.calibration.residuals.rms_pct);
}

TEST_CASE("a burst that the cluster or the caller states explains such messages", "[calibrate]") {
  Cluster cluster = shaped();
  const auto probes = messages_on(cluster);
  CalibrateOptions options{.date = "2026-01-31"};
  SECTION("the cluster") {}
  SECTION("the caller") {
    cluster.links["nic"].service.burst = Bytes{0};
    options.assumed = {{"link.nic.burst", "16000B"}};
  }
  const auto result = calibrate(cluster, probes, options);
  CHECK(result.left_out.empty());
  CHECK(result.calibration.residuals.rms_pct < 1.0);
}

TEST_CASE("links that are faster than nominal at every size are fitted as they are", "[calibrate]") {
  // From 64 kB on all rows take 7 % less than 110 MB/s allow.
  Cluster cluster = shaped();
  cluster.links["nic"].service.burst = Bytes{0};
  const auto probes = messages_on(cluster);
  cluster.links["nic"].bandwidth = BytesPerSecond{110e6};
  const auto result = calibrate(cluster, probes, {.date = "2026-01-31"});
  CHECK(result.left_out.empty());
  CHECK(result.rows.size() == probes.size());
}

TEST_CASE("a burst does not pull the fit of large messages off, nor what the fit leaves", "[calibrate]") {
  // The same rows with 64 kB and less, which the bucket passed, and without: the rate of large messages is the same.
  Cluster cluster = shaped();
  const auto probes = messages_on(cluster);
  cluster.links["nic"].service.burst = Bytes{0};
  const auto with = calibrate(cluster, probes, {.date = "2026-01-31"});
  const std::vector<Probe> large(probes.begin() + 4, probes.end());
  const auto without = calibrate(cluster, large, {.date = "2026-01-31"});
  CHECK_THAT(value_of(with.calibration, "link.nic.efficiency"),
             WithinRel(value_of(without.calibration, "link.nic.efficiency"), 0.005));
  CHECK(with.calibration.residuals.rms_pct < 3.0);
  for (const CalibratedRow& row : with.left_out) CHECK(row.error_pct() > 15.0);
}
