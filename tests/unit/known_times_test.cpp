// Which numbers a probe's time is taken not to depend on, so that it is not replayed again when they change.
#include "validate/calibrate/known_times.hpp"

#include "platforms/reader.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab.hpp"
#include "validate/calibrate/calibrate.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

struct Change {
  const char* key;
  const char* value;
};

/// Each slows down something by much.
const Change kChanges[] = {{"collective.launch", "1s"},       {"collective.per_step_inter", "1s"},
                           {"group.*.cpu.per_tensor", "1s"},  {"group.*.cpu.dispatch_latency", "1s"},
                           {"group.*.cpu.sum_rate", "1KB/s"}, {"group.*.cpu.threads", "1"},
                           {"link.nic.latency", "1s"},        {"link.nic.efficiency", "0.01"}};

const ProbeKind kKinds[] = {ProbeKind::AllReduce, ProbeKind::AllGather, ProbeKind::ReduceScatter,
                            ProbeKind::Push,      ProbeKind::Pull,      ProbeKind::Message};

}  // namespace

TEST_CASE("what a probe is said not to depend on does not change its time", "[calibrate]") {
  int independent = 0;
  for (const ProbeKind kind : kKinds) {
    const Probe probe{.kind = kind, .ranks = 3, .per_node = 1, .bytes = 1e6, .count = 4, .measured = {}, .where = {}};
    const Cluster cluster = grown_for(lab_cluster(4, 1, {.nic = 1e9, .nic_latency = 1e-5}), {probe});
    const Seconds before = predicted_time(probe, cluster);
    for (const auto& [key, value] : kChanges) {
      if (detail::depends(probe, key)) continue;
      Cluster changed = cluster;
      set_parameter(changed, key, value);
      INFO(name_of(kind) << ", " << key);
      CHECK(predicted_time(probe, changed) == before);
      ++independent;
    }
  }
  CHECK(independent == 3 * 4 + 2 + 3 + 6);
}

TEST_CASE("a time is replayed again when what it depends on changes", "[calibrate]") {
  Probe probe{.kind = ProbeKind::Message, .ranks = 2, .per_node = 1, .bytes = 1e6, .measured = {}, .where = {}};
  const Cluster cluster = lab_cluster(2, 1);
  Cluster slower = cluster;
  slower.links["nic"].bandwidth = BytesPerSecond{1e8};
  detail::KnownTimes times;
  const Seconds first = times.of(0, probe, cluster, {{"link.nic.bandwidth", "1GB/s"}});
  CHECK(times.of(0, probe, slower, {{"link.nic.bandwidth", "1GB/s"}}) == first);
  CHECK_THAT(times.of(0, probe, slower, {{"link.nic.bandwidth", "100MB/s"}}).value(),
             WithinRel(10.0 * first.value(), 1e-6));
  probe.bytes = 2e6;
  CHECK_THAT(times.of(1, probe, cluster, {{"link.nic.bandwidth", "1GB/s"}}).value(),
             WithinRel(2.0 * first.value(), 1e-6));
}

TEST_CASE("only the latest times of a probe are kept", "[calibrate]") {
  const Probe probe{.kind = ProbeKind::Message, .ranks = 2, .per_node = 1, .bytes = 1e6, .measured = {}, .where = {}};
  const Cluster cluster = lab_cluster(2, 1);
  Cluster slower = cluster;
  slower.links["nic"].bandwidth = BytesPerSecond{1e8};
  detail::KnownTimes times;
  const auto with = [](int number) {
    return std::vector<std::pair<std::string, std::string>>{{"link.nic.latency", std::to_string(number) + "us"}};
  };
  const Seconds first = times.of(0, probe, cluster, with(0));
  for (int i = 1; i < 64; ++i) (void)times.of(0, probe, cluster, with(i));
  CHECK(times.of(0, probe, slower, with(0)) == first);
  (void)times.of(0, probe, cluster, with(64));
  CHECK(times.of(0, probe, slower, with(0)) > first);
}
