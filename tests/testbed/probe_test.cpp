// Probes on real processes on this machine's loopback addresses.
#include "hw/run/run_probe.hpp"
#include "tests/support/catch.hpp"
#include "tests/testbed/small_run.hpp"

using namespace simsync;

namespace {

Probe tiny(ProbeKind kind, int ranks, int count) {
  Probe probe;
  probe.kind = kind;
  probe.ranks = ranks;
  probe.per_node = 1;
  probe.bytes = 40'004;
  probe.count = count;
  probe.algorithm = CollectiveAlgorithm::Ring;
  if (kind == ProbeKind::Overlap) probe.compute = Seconds{0.01};
  return probe;
}

}  // namespace

TEST_CASE("a probe of every kind runs for real, as the plan that is simulated") {
  const Cluster cluster = test::lab_cluster(4, 1);
  int port = 29'680;
  for (const ProbeKind kind : {ProbeKind::AllReduce, ProbeKind::AllGather, ProbeKind::Push, ProbeKind::Pull,
                               ProbeKind::Message, ProbeKind::Overlap, ProbeKind::Reads}) {
    for (const int ranks : {2, 3}) {
      if (kind == ProbeKind::Message && ranks > 2) continue;
      const ProbeRun run{.probe = tiny(kind, ranks, 5), .warm_up = 2, .iterations = 6, .expected = {}};
      INFO(name_of(kind) << " with " << ranks << " ranks");
      const Plan plan = plan_of(run.probe, cluster);
      LaunchOptions options = test::loopback(port++);
      const ProbeTimes times = run_probe(run, cluster, options);
      CHECK(times.each.size() == 6);
      CHECK(quantile_of(times.each, 0.0) > Seconds{0.0});
      CHECK(probe_cells(run.probe, times).size() == probe_header().size());
      // Reads and collectives are compared with what they should be: every one by every rank in every iteration, of
      // which one more follows that is not timed.
      options.port = port++;
      options.run = {.iterations = 6, .warm_up = 2, .timeout_s = 10.0};
      const auto checked = launch(plan, options).checked;
      if (run.probe.collective()) CHECK(checked == 9 * ranks);
      // Compute is a deadline here: all-reduces beside it do not move it.
      if (kind == ProbeKind::Overlap) CHECK_THAT(times.median().value(), WithinRel(0.01, 1e-6));
      if (kind == ProbeKind::Overlap) CHECK(checked == 9 * ranks * 5);
      if (kind == ProbeKind::Pull) CHECK(checked == 9 * ranks * 5);
      if (kind == ProbeKind::Reads) CHECK(checked == 9 * 5);  // by the first rank only
    }
  }
}

TEST_CASE("what passes between two iterations is not part of a step's active time") {
  // Agent 0 works from 1 to 2 s and from 3 to 4 s, agent 1 from 1.5 to 2.5 s and from 3.5 to 4.5 s, then at once again
  // until 5 s: the second iteration takes 2 s from end to end, of which it is active from 3 to 4.5 s. The last one, to
  // 9 s, is not timed.
  const AgentRecord first{.iteration_start = {1.0, 3.0, 4.4, 5.0},
                          .iteration_end = {2.0, 4.0, 4.9, 9.0},
                          .timed = {0.5, 0.25, 0.125, 1.0},
                          .spans = {}};
  const AgentRecord second{.iteration_start = {1.5, 3.5, -1.0, 5.0},
                           .iteration_end = {2.5, 4.5, 5.0, 9.0},
                           .timed = {0.5, 0.5, 0.0, 1.0},
                           .spans = {}};
  const Measurement measured = merge({first, second}, 1, false);
  REQUIRE(measured.steps.size() == 2);
  CHECK(measured.steps[0] == Seconds{2.0});
  CHECK(measured.active[0] == Seconds{1.5});
  CHECK(measured.active[1] == Seconds{0.5});  // it began before the end of the one before
  CHECK(measured.timed == std::vector<Seconds>{Seconds{0.5}, Seconds{0.125}});  // of the slower one
}
