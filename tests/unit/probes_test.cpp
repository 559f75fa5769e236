// Which probes are chosen, and their plans.
#include <set>

#include "base/error.hpp"
#include "sim/plan/compile.hpp"
#include "sim/problem/choose_probes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

/// Hosts with one device each on a network of 125 MB/s.
Cluster hosts(int count, int servers = 0) {
  return lab_cluster(count, 1, {.nic = 125e6}, servers);
}

std::set<int> ranks_of(const std::vector<ProbeRun>& runs, ProbeKind kind) {
  std::set<int> out;
  for (const ProbeRun& run : runs)
    if (run.probe.kind == kind) out.insert(run.probe.ranks);
  return out;
}

}  // namespace

TEST_CASE("nominal time of a probe", "[probe]") {
  // An all-reduce of 125 MB on 4 ranks moves 1.5 times its bytes through each NIC: 1.5 s, and 6 rounds of 100 us.
  Probe probe{.kind = ProbeKind::AllReduce, .ranks = 4, .per_node = 1, .bytes = 125e6, .measured = {}, .where = {}};
  CHECK_THAT(nominal_time(probe, hosts(4)).value(), WithinRel(1.5006, 1e-9));
  // 3 workers push 2 tensors of 12.5 MB into one NIC: 0.6 s, 100 us, and 6 times 20 us.
  probe = {
      .kind = ProbeKind::Push, .ranks = 3, .per_node = 1, .bytes = 12.5e6, .count = 2, .measured = {}, .where = {}};
  CHECK_THAT(nominal_time(probe, hosts(4)).value(), WithinRel(0.60022, 1e-9));
  // The slowest NIC counts: with half of its rate the bytes take twice as long.
  Cluster uneven = hosts(4, 1);
  uneven.groups.back().nic_slowdown = 2.0;
  CHECK_THAT(nominal_time(probe, uneven).value(), WithinRel(1.20022, 1e-9));
}

TEST_CASE("probes of every kind, on few and on all hosts, within half a second each", "[probe]") {
  const Cluster cluster = hosts(4);
  const auto runs = choose_probes(cluster, Seconds{600.0});
  CHECK(ranks_of(runs, ProbeKind::Message) == std::set<int>{2});
  CHECK(ranks_of(runs, ProbeKind::AllReduce) == std::set<int>{2, 4});
  // One host is the server.
  CHECK(ranks_of(runs, ProbeKind::Push) == std::set<int>{1, 3});
  CHECK(ranks_of(runs, ProbeKind::Pull) == std::set<int>{1, 3});
  double most = 0.0;
  for (const ProbeRun& run : runs) most = std::max(most, nominal_time(run.probe, cluster).value());
  CHECK(most <= 0.5);
  CHECK(most > 0.1);  // sizes grow by at most 16 and the largest may take half a second
  CHECK(expected_time(runs) <= Seconds{600.0});
  // None of them makes the cluster grow: what is measured is what stands there.
  std::vector<Probe> probes;
  for (const ProbeRun& run : runs) probes.push_back(run.probe);
  CHECK(grown_for(cluster, probes).node_count() == 4);
}

TEST_CASE("with a host for servers all others talk to it", "[probe]") {
  CHECK(ranks_of(choose_probes(hosts(4, 1), Seconds{600.0}), ProbeKind::Push) == std::set<int>{1, 4});
}

TEST_CASE("reads alone, beside one that pushes, and beside several for as long as a probe may take", "[probe]") {
  const auto runs = choose_probes(hosts(4, 1), Seconds{600.0});
  CHECK(ranks_of(runs, ProbeKind::Reads) == std::set<int>{1, 2, 3, 4});
  std::set<double> pushed;
  for (const ProbeRun& run : runs)
    if (run.probe.kind == ProbeKind::Reads && run.probe.ranks > 1)
      pushed.insert((run.probe.ranks - 1) * run.probe.bytes);
  CHECK(*pushed.rbegin() - *pushed.begin() <= 3.0);  // rounded to whole bytes
}

TEST_CASE("all-reduces that outlast the compute beside them", "[probe]") {
  const Cluster cluster = hosts(4);
  const auto runs = choose_probes(cluster, Seconds{600.0});
  CHECK(ranks_of(runs, ProbeKind::Overlap) == std::set<int>{4});
  int overlaps = 0;
  for (const ProbeRun& run : runs) {
    if (run.probe.kind != ProbeKind::Overlap) continue;
    ++overlaps;
    CHECK(run.probe.compute > Seconds{0.01});
    // Nominal time is that of the all-reduces; without them it is the compute.
    CHECK_THAT(nominal_time(run.probe, cluster).value(), WithinRel(2.0 * run.probe.compute.value(), 1e-9));
    Probe alone = run.probe;
    alone.count = 1;
    CHECK(nominal_time(alone, cluster) == alone.compute);
  }
  CHECK(overlaps == 2);
}

TEST_CASE("a short budget costs repetitions, then sizes, and is refused at last", "[probe]") {
  const Cluster cluster = hosts(4);
  const auto most = choose_probes(cluster, Seconds{600.0});
  const auto fewer = choose_probes(cluster, 0.95 * expected_time(most));
  CHECK(expected_time(fewer) <= 0.95 * expected_time(most));
  CHECK(fewer.size() == most.size());
  const auto smaller = choose_probes(cluster, 0.55 * expected_time(most));
  CHECK(expected_time(smaller) <= 0.55 * expected_time(most));
  CHECK(smaller.size() < most.size());
  CHECK_THROWS_AS(choose_probes(cluster, Seconds{1.0}), InputError);
  CHECK_THROWS_WITH(choose_probes(hosts(1), Seconds{600.0}), "cluster 'lab' has less than two hosts to measure");
}

TEST_CASE("iterations of a probe do not overlap and every transfer has a buffer", "[probe]") {
  const Cluster cluster = hosts(3);
  for (const ProbeKind kind : {ProbeKind::AllReduce, ProbeKind::Push, ProbeKind::Pull, ProbeKind::Message,
                               ProbeKind::Overlap, ProbeKind::Reads}) {
    const Probe probe{.kind = kind, .ranks = 2, .per_node = 1, .bytes = 1e3, .count = 3, .measured = {}, .where = {}};
    const Plan plan = plan_of(probe, cluster);
    check(plan);
    INFO(name_of(kind));
    for (const Op& op : plan.ops) {
      REQUIRE_FALSE(op.after.empty());  // of this iteration or, what begins one, of the iteration before
      if (op.kind() == OpKind::Transfer || op.kind() == OpKind::HostWork)
        CHECK((op.tensor() >= 0 && op.tensor() < plan.tensors));
    }
  }
}

TEST_CASE("a push of a probe costs a server what the push of a training step does", "[probe]") {
  // One thread adds 4 MB at 4 GB/s in 1 ms; the tensor takes it 50 us more. Two numbers are read and one is written, so
  // the memory passes 12 MB in that millisecond, half of its 24 GB/s: the sum takes half of the 4 threads with it.
  Cluster cluster = hosts(2, 1);
  CpuClass& cpu = cluster.groups.back().cpu;
  cpu.threads = 4;
  cpu.sum_rate = BytesPerSecond{4e9};
  cpu.per_tensor = Seconds{50e-6};
  cpu.dispatch_latency = Seconds{20e-6};
  cpu.memory_bandwidth = BytesPerSecond{24e9};
  const auto sum_of = [](const Plan& plan) {
    std::vector<HostWork> sums;
    for (const Op& op : plan.ops)
      if (op.kind() == OpKind::HostWork && op.host().action == HostAction::Sum) sums.push_back(op.host());
    REQUIRE(sums.size() == 1);
    return sums.front();
  };
  const Probe probe{.kind = ProbeKind::Push, .ranks = 2, .per_node = 1, .bytes = 4e6, .measured = {}, .where = {}};
  const LabModel lab{{.bytes = 4e6, .forward = 1e-3, .backward = 1e-3}};
  const HostWork probed = sum_of(plan_of(probe, cluster));
  const HostWork trained = sum_of(compile(lab.model, lab.profile, cluster, on_server(lab.model, 2, {2, -1})));
  for (const HostWork& sum : {probed, trained}) {
    CHECK_THAT(sum.duration.value(), WithinRel(1.05e-3, 1e-12));
    CHECK_THAT(sum.threads, WithinRel(2.0, 1e-12));
    CHECK(sum.bytes == 4e6);
    CHECK(sum.one_at_a_time);
  }
}

TEST_CASE("the ops of each probe of a server, in order", "[probe]") {
  // Dispatch is what wakes a thread; a chain of a push is sent, dispatched, summed, applied, and all are gathered at
  // the end; a chain of a read is dispatched, served, sent.
  Cluster cluster = hosts(2, 1);
  cluster.groups.back().cpu.dispatch_latency = Seconds{20e-6};
  const auto phases = [&](ProbeKind kind) {
    const Plan plan =
        plan_of({.kind = kind, .ranks = 2, .per_node = 1, .bytes = 1e3, .measured = {}, .where = {}}, cluster);
    std::string out;
    for (const Op& op : plan.ops)
      out += std::string(name_of(op.reason.phase)) + (op.grouping == kEachRank ? "* " : " ");
    return out;
  };
  CHECK(phases(ProbeKind::Push) == "push* dispatch* aggregate* update serve ");
  CHECK(phases(ProbeKind::Pull) == "serve dispatch* serve* pull* ");
  CHECK(phases(ProbeKind::Message) == "push* ");
  CHECK(phases(ProbeKind::Reads) == "serve dispatch serve pull push dispatch aggregate update serve ");
}
