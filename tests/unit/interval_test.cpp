// Intervals by hand: what an error of compute or of the network moves the step.
#include <cmath>

#include "base/spread.hpp"
#include "models/time_error.hpp"
#include "platforms/network_error.hpp"
#include "sim/engine/predict.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

PredictedRow with(PredictRequest request, const Settings& settings) {
  request.settings.insert(request.settings.end(), settings.begin(), settings.end());
  return predict(request);
}

/// All communication after all compute, and nobody waits for the slowest.
const PredictRequest kSerial{.model = "vgg16",
                             .cluster = "two-nodes",
                             .strategy = "bsp",
                             .workers = 8,
                             .settings = {{"device.T4.compute_variation", "0"}}};

}  // namespace

TEST_CASE("a device alone is as far off as its layer times", "[engine][interval]") {
  // Alone but for the launch of a collective of one, 8 us of 0.5 s.
  const PredictRequest alone{.model = "resnet50", .cluster = "two-nodes", .strategy = "wfbp", .workers = 1};
  const PredictedRow row = predict(alone);
  CHECK_THAT(row.step_low / row.step_time, WithinRel(time_errors().estimate_fp32.low, 1e-4));
  CHECK_THAT(row.step_high / row.step_time, WithinRel(time_errors().estimate_fp32.high, 1e-4));
  const PredictedRow measured = with(alone, {{"step_time", "200ms"}});
  CHECK_THAT(measured.step_high / measured.step_time, WithinRel(time_errors().step_time.high, 1e-4));
  const PredictedRow said = with(alone, {{"compute_error", "0.1"}});
  CHECK_THAT(said.step_high / said.step_time, WithinRel(std::exp(0.1 * kNormal90), 1e-4));
}

TEST_CASE("what the user is sure of has no interval", "[engine][interval]") {
  const PredictedRow row = with(kSerial, {{"compute_error", "0"}, {"network_error", "0"}});
  CHECK(row.step_low == row.step_time);
  CHECK(row.step_high == row.step_time);
}

TEST_CASE("without overlap the errors of compute and network count by their parts of the step", "[engine][interval]") {
  // Step = c + n. Compute e^x as long: c e^x + n; the network e^y as long: c + n e^y; both on their logarithms.
  const PredictedRow row = with(kSerial, {{"compute_error", "0.2"}, {"network_error", "0.3"}});
  const double c = row.compute.value();
  const double n = row.exposed_comm.value();
  REQUIRE(c > 0.1 * n);
  REQUIRE(n > 0.1 * c);
  const auto reach = [&](double sign) {
    const double by_compute = std::log((c * std::exp(sign * 0.2 * kNormal90) + n) / (c + n));
    const double by_network = std::log((c + n * std::exp(sign * 0.3 * kNormal90)) / (c + n));
    return std::hypot(by_compute, by_network);
  };
  CHECK_THAT(std::log(row.step_high / row.step_time), WithinRel(reach(1.0), 1e-3));
  CHECK_THAT(std::log(row.step_time / row.step_low), WithinRel(reach(-1.0), 1e-3));
}

TEST_CASE("what hides behind compute counts until it comes out", "[engine][interval]") {
  // VGG-16 computes for 10 s; on an NVLink box its gradients of 553 MB need milliseconds. A network twice as slow still
  // hides, one that is 20,000 times as slow does not.
  const PredictRequest hidden{.model = "vgg16", .cluster = "dgx-1", .strategy = "ddp", .workers = 8};
  const PredictedRow row = with(hidden, {{"step_time", "10s"}, {"compute_error", "0"}, {"network_error", "0.42"}});
  CHECK(row.step_high / row.step_time < 1.01);
  const PredictedRow slow = with(hidden, {{"step_time", "1ms"}, {"compute_error", "0"}, {"network_error", "0.42"}});
  CHECK(slow.step_high / slow.step_time > 1.5);
}

TEST_CASE("a preset's network is known less well than one with measured rates", "[engine][interval]") {
  const Settings own{{"compute_error", "0"}, {"collective.interference", "0"}};
  const auto width = [](const PredictedRow& row) { return row.step_high / row.step_low; };
  PredictRequest nominal = kSerial;
  nominal.settings.emplace_back("compute_error", "0");
  const PredictedRow as_it_is = predict(nominal);
  // What the preset says already tells nothing new about its network.
  const PredictedRow said_again =
      with(nominal, {{"link.ethernet.bandwidth", "10Gbps"}, {"link.pcie3.latency", "0.5us"}});
  CHECK(said_again.step_high == as_it_is.step_high);
  CHECK(said_again.step_low == as_it_is.step_low);
  // Its network is one 10 Gbit/s port, at another rate than the preset's.
  PredictRequest measured = kSerial;
  measured.settings.emplace_back("link.ethernet.efficiency", "0.9");
  const PredictedRow set = with(measured, own);
  CHECK(width(set) < width(as_it_is));
  const double c = set.compute.value();
  const double n = set.exposed_comm.value();
  CHECK_THAT(set.step_high.value(), WithinRel(c + n * network_errors().set.high, 1e-3));
  CHECK_THAT(set.step_low.value(), WithinRel(c + n * network_errors().set.low, 1e-3));
}
