// Reads one after another, alone and beside pushes, as probes and in a fit.
#include "tests/support/catch.hpp"
#include "tests/support/lab.hpp"
#include "tests/unit/calibrate_support.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

constexpr double kRate = 1e6;  ///< bytes per second

Probe reads(int ranks, double bytes) {
  return probe(ProbeKind::Reads, ranks, bytes, 8);
}

}  // namespace

TEST_CASE("reads one after another: two latencies and the server's, and what asks for them wait", "[engine][ports]") {
  Cluster cluster = lab_cluster(4, 1, {.nic = kRate, .nic_latency = 0.001}, 1);
  for (NodeGroup& group : cluster.groups) group.cpu.dispatch_latency = Seconds{0.005};
  constexpr double kRead = 0.001 + 1024.0 / kRate + 0.001 + 0.005;
  CHECK_THAT(predicted_time(reads(1, 1.0), cluster).value(), WithinRel(8.0 * kRead, 1e-6));
  // Pushes of two others outlast the reads; only what is asked for waits, as answers leave by an empty port.
  const double alone = predicted_time(reads(3, 2e6), cluster).value();
  CHECK_THAT(alone, WithinRel(8.0 * kRead, 1e-6));
  cluster.links["nic"].service.queueing_delay = Seconds{0.05};
  CHECK_THAT(predicted_time(reads(3, 2e6), cluster).value(), WithinRel(8.0 * (kRead + 0.05), 1e-2));
  // One other is held up by its own link, and passes the server's.
  cluster.links["nic"].service.passing_delay = Seconds{0.02};
  CHECK_THAT(predicted_time(reads(2, 4e6), cluster).value(), WithinRel(8.0 * (kRead + 0.02), 1e-2));
}

TEST_CASE("fair queues: what asks for a read waits for a turn of everyone who pushes", "[engine][ports]") {
  Cluster cluster = lab_cluster(4, 1, {.nic = kRate, .nic_latency = 0.001}, 1);
  cluster.links["nic"].service.turn = Bytes{5'000};
  constexpr double kRead = 0.001 + 1024.0 / kRate + 0.001;
  CHECK_THAT(predicted_time(reads(1, 1.0), cluster).value(), WithinRel(8.0 * kRead, 1e-6));
  // The first of eight is asked for before the pushes' first bytes are on their way.
  CHECK_THAT(predicted_time(reads(2, 4e6), cluster).value(), WithinRel(8.0 * kRead + 7.0 * 0.005, 1e-6));
  CHECK_THAT(predicted_time(reads(3, 2e6), cluster).value(), WithinRel(8.0 * kRead + 7.0 * 0.010, 1e-6));
}

TEST_CASE("probes of collectives find token buckets empty, single messages full", "[calibrate][burst]") {
  Cluster cluster = lab_cluster(4, 1, {.nic = kRate});
  const Probe ring{.kind = ProbeKind::AllReduce, .ranks = 4, .bytes = 4e5, .algorithm = CollectiveAlgorithm::Ring};
  const Probe message = probe(ProbeKind::Message, 2, 4e5);
  const double ring_without = predicted_time(ring, cluster).value();
  CHECK_THAT(predicted_time(message, cluster).value(), WithinRel(0.4, 1e-6));
  cluster.links["nic"].service.burst = Bytes{50'000};
  CHECK_THAT(predicted_time(ring, cluster).value(), WithinRel(ring_without, 1e-6));
  CHECK_THAT(predicted_time(message, cluster).value(), WithinRel(0.35, 1e-6));
}

TEST_CASE("calibration takes the turns of fair queues as they are stated", "[calibrate][ports]") {
  Cluster cluster = lab_cluster(4, 1, {.nic = 1e8, .nic_latency = 20e-6}, 1);
  const std::vector<Probe> probes{reads(1, 1.0), reads(2, 4e7), reads(4, 1.4e7), probe(ProbeKind::Message, 2, 1e6)};
  const auto delays = [&] {
    const std::vector<Unknown> unknowns = models_for(cluster, probes).front().unknowns;
    return std::ranges::count_if(unknowns, [](const Unknown& u) { return u.key.ends_with("ing_delay"); });
  };
  CHECK(delays() == 2);
  cluster.links["nic"].service.turn = Bytes{8'000};
  CHECK(delays() == 0);
}

TEST_CASE("calibration finds both delays from reads", "[calibrate][ports]") {
  Cluster truth = lab_cluster(4, 1, {.nic = 1e8, .nic_latency = 20e-6}, 1);
  truth.links["nic"].service.queueing_delay = Seconds{6e-3};
  truth.links["nic"].service.passing_delay = Seconds{300e-6};
  for (NodeGroup& group : truth.groups) group.cpu.dispatch_latency = Seconds{100e-6};
  std::vector<Probe> probes{reads(1, 1.0), reads(2, 4e7), reads(3, 2e7), reads(4, 1.4e7)};
  for (const double bytes : {1e3, 1e4, 1e5, 1e6}) {
    probes.push_back(probe(ProbeKind::Message, 2, bytes));
    for (const ProbeKind kind : {ProbeKind::Push, ProbeKind::Pull})
      for (const int count : {1, 16}) probes.push_back(probe(kind, 3, bytes, count));
  }
  const Cluster start = lab_cluster(4, 1, {.nic = 1e8, .nic_latency = 50e-6}, 1);
  const Calibration found =
      calibrate(start, measured_on(truth, probes), {.assumed = {{"group.*.cpu.threads", "64"}}, .date = "2026-11-22"})
          .calibration;
  CHECK_THAT(value_of(found, "link.nic.queueing_delay"), WithinRel(6e-3, 0.02));
  CHECK_THAT(value_of(found, "link.nic.passing_delay"), WithinRel(300e-6, 0.05));
  CHECK_THAT(value_of(found, "group.*.cpu.dispatch_latency"), WithinRel(100e-6, 0.05));
}
