// What the rates of a network rest on: which settings and calibrations count.
#include <fmt/format.h>

#include "sim/problem/problem.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_file.hpp"

using namespace simsync;

namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

PredictRequest on_g4dn(const std::string& strategy, int workers, Settings settings, const std::string& calibration) {
  return {.model = "vgg16",
          .cluster = "g4dn.12xlarge",
          .strategy = strategy,
          .workers = workers,
          .settings = std::move(settings),
          .calibration = calibration};
}

NetworkBasis basis(int workers, Settings settings, const std::string& calibration = {}) {
  return prepare(on_g4dn("ddp", workers, std::move(settings), calibration)).network;
}

std::string calibration_of(const std::string& key, const std::string& value, const std::string& valid_for) {
  return fmt::format(
      "schema: simsync/calibration/v1\ncluster: g4dn.12xlarge\ndate: 2026-11-23\nsources: [here]\nvalid_for: [{}]\n"
      "rows: 9\nresiduals: {{rms_pct: 3, median_pct: 2, worst_pct: 9}}\n"
      "parameters:\n  - {{key: {}, value: {}, scale: log, deviation: 0.05}}\ncorrelation: [[1]]\n",
      valid_for, key, value);
}

}  // namespace

TEST_CASE("a rate counts as set where the job's communication crosses its link and it changes", "[problem][interval]") {
  CHECK(basis(8, {}) == NetworkBasis::File);
  CHECK(basis(8, {{"link.ethernet.per_flow_cap", "20Gbps"}}) == NetworkBasis::Set);
  // The file says so already.
  CHECK(basis(8, {{"link.ethernet.bandwidth", "50Gbps"}}) == NetworkBasis::File);
  CHECK(basis(8, {{"collective.channels", "1"}}) == NetworkBasis::File);
  // Between nodes the NIC tells, on one node PCIe.
  CHECK(basis(8, {{"link.pcie3.efficiency", "0.5"}}) == NetworkBasis::File);
  CHECK(basis(4, {{"link.pcie3.efficiency", "0.5"}}) == NetworkBasis::Set);
  CHECK(basis(4, {{"link.ethernet.per_flow_cap", "20Gbps"}}) == NetworkBasis::File);
  // No rate.
  CHECK(basis(8, {{"link.ethernet.latency", "1us"}, {"step_time", "427ms"}}) == NetworkBasis::File);
}

TEST_CASE("a calibration counts where it has what the job's communication rests on", "[problem][interval]") {
  const auto with = [](int workers, const std::string& key, const std::string& value) {
    const test::ScratchFile file(calibration_of(key, value, "\"ddp on g4dn.12xlarge\""), "cal.yaml");
    return basis(workers, {}, file.path());
  };
  CHECK(with(8, "link.pcie3.efficiency", "0.3") == NetworkBasis::File);
  CHECK(with(4, "link.pcie3.efficiency", "0.3") == NetworkBasis::Calibrated);
  CHECK(with(8, "link.ethernet.per_flow_cap", "20Gbps") == NetworkBasis::Calibrated);
  CHECK(with(8, "collective.per_step_inter", "20us") == NetworkBasis::Calibrated);
  CHECK(with(8, "collective.launch", "20us") == NetworkBasis::File);
  // A rate that is set besides is as little known as without the calibration.
  const test::ScratchFile file(calibration_of("link.ethernet.per_flow_cap", "20Gbps", "\"ddp\""), "cal.yaml");
  CHECK(basis(8, {{"link.ethernet.bandwidth", "10Gbps"}}, file.path()) == NetworkBasis::Set);
}

TEST_CASE("a calibration of other strategies is noted", "[problem]") {
  const test::ScratchFile file(calibration_of("link.ethernet.per_flow_cap", "20Gbps",
                                              "\"byteps on g4dn.12xlarge, 4 workers\", \"ps on g4dn.12xlarge\""),
                               "cal.yaml");
  const auto notes = [&](const std::string& strategy) {
    return fmt::format("{}", fmt::join(prepare(on_g4dn(strategy, 8, {}, file.path())).notes, "\n"));
  };
  CHECK_THAT(notes("byteps"), !ContainsSubstring("does not name"));
  CHECK_THAT(notes("ps"), !ContainsSubstring("does not name"));
  // A part of a name is another strategy.
  CHECK_THAT(notes("p3"), ContainsSubstring("does not name strategy 'p3': it was fitted to byteps on g4dn.12xlarge, 4 "
                                            "workers, and 1 more"));
}
