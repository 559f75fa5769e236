// What a transport hides, what remote calls cost hosts, and what ranks in lock step wait for.
#include "sim/plan/plan_writer.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab_run.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

constexpr double kExact = 1e-6;
const LabLinks kSlow{.nic = 1.0, .port = 1.0};  ///< 1 B/s: bytes are seconds
const LabLinks kFast{.nic = 1e9, .port = 1e9};

}  // namespace

TEST_CASE("collectives move beside a share of the backward pass", "[engine][overlap][transport]") {
  // Layers 0, 1, 2: backward 4, 8, 4 s; all-reduce 8, 4, 12 s; forward 4 s each, so backward ends at 16, 24, 28.
  const LabModel lab{{8, 4, 4}, {4, 4, 8}, {12, 4, 4}};
  const Cluster cluster = lab_cluster(2, 1, kSlow);
  Strategy strategy = all_reduced(lab.model, 2);
  double& share = strategy.graph.collectives_overlap.between_nodes;
  // 3/4 of 16 s: layers 0 and 1 may run beside the first collective, as in a wait-free backward pass: 40 s.
  share = 0.75;
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(40.0, kExact));
  // 1/4: layer 0 alone. comm 2 24..36, comm 1 36..40, comm 0 40..48.
  share = 0.25;
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(48.0, kExact));
  // 1/5 and 1/2: 3.2 and 8 of 16 s are still to come at 24.8 and 20, from when on they take 24 s.
  share = 0.2;
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(48.8, kExact));
  share = 0.5;
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(44.0, kExact));
  // Two devices of one node are not between nodes.
  CHECK_THAT(step_of(lab, lab_cluster(1, 2, kSlow), strategy), WithinRel(40.0, kExact));
  strategy.graph.collectives_overlap.in_node = 0.0;
  CHECK_THAT(step_of(lab, lab_cluster(1, 2, kSlow), strategy), WithinRel(52.0, kExact));
}

TEST_CASE("pushes to other nodes move beside a share of the backward pass", "[engine][server][transport]") {
  // One worker, its server on another host. Backward: layer 1 4 s, layer 0 4 s. Push 1 4..12, pull 1 12..20;
  // push 0 12..16 and pull 0 20..24 behind them.
  const LabModel lab{{4, 0, 4}, {8, 0, 4}};
  const Cluster cluster = lab_cluster(1, 1, kSlow, 1);
  Strategy strategy = on_server(lab.model, 1, {1, -1});
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(24.0, kExact));
  // Nothing leaves before 8: push 1 8..16, push 0 16..20, pull 1 16..24, pull 0 24..28.
  strategy.graph.servers_overlap.between_nodes = 0.0;
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(28.0, kExact));
  // A server on the worker's own host is not on another node.
  const Strategy at_home = [&] {
    Strategy out = on_server(lab.model, 1, {0, -1});
    out.graph.servers_overlap.between_nodes = 0.0;
    return out;
  }();
  Strategy free = at_home;
  free.graph.servers_overlap = {};
  CHECK(step_of(lab, cluster, at_home) == step_of(lab, cluster, free));
}

TEST_CASE("threads of a host share sums and updates of large tensors", "[engine][server][transport]") {
  // One worker, its server on another host with 4 threads: 64 MB to sum and to apply at 0.1 GB/s a thread, and on the
  // wire at 1 GB/s, 0.064 s each way.
  constexpr double kBytes = 64e6;
  constexpr double kWire = 2 * 0.064;
  Cluster cluster = lab_cluster(1, 1, kFast, 1);
  CpuClass& cpu = cluster.groups[1].cpu;
  cpu = {.threads = 4, .per_tensor = Seconds{0}, .update_rate = BytesPerSecond{1e8}, .sum_rate = BytesPerSecond{1e8}};
  const LabModel lab{{.bytes = kBytes}};
  Strategy strategy = on_server(lab.model, 1, {1, -1});
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(0.64 + 0.64 + kWire, 1e-4));
  strategy.graph.parallel_host_ops = true;
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(0.16 + 0.16 + kWire, 1e-4));
  // Memory reads two operands of a sum and writes one: 0.6 GB/s are 0.2 GB/s of gradient. Of an update with momentum it
  // reads three and writes two: 0.12 GB/s.
  cpu.memory_bandwidth = BytesPerSecond{0.6e9};
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(0.32 + kBytes / 0.12e9 + kWire, 1e-4));
  cpu.memory_bandwidth.reset();
  // Two such tensors take turns, each on all threads. Pushes end at 0.064 and 0.128, sums at 0.224 and 0.384, updates
  // at 0.544 and 0.704 (what is ready first goes first), pulls at 0.608 and 0.768.
  const LabModel two{{.bytes = kBytes}, {.bytes = kBytes}};
  Strategy both = on_server(two.model, 1, {1, -1});
  both.graph.parallel_host_ops = true;
  CHECK_THAT(step_of(two, cluster, both), WithinRel(0.768, 1e-4));
  // A tensor of one block of 64 kB keeps one thread: 0.64 ms for the sum and as long for the update.
  const LabModel small{{.bytes = 64e3}};
  Strategy alone = on_server(small.model, 1, {1, -1});
  alone.graph.parallel_host_ops = true;
  CHECK_THAT(step_of(small, cluster, alone), WithinRel(2 * 0.64e-3 + 2 * 64e-6, 0.01));
}

TEST_CASE("works on a host share its memory bandwidth", "[engine][server][transport]") {
  // Two tensors of 64 MB, 4 threads, 0.1 GB/s a thread. A sum takes 0.3 GB/s of memory, an update 0.5.
  const LabModel lab{{.bytes = 64e6}, {.bytes = 64e6}};
  Cluster cluster = lab_cluster(1, 1, kFast, 1);
  CpuClass& cpu = cluster.groups[1].cpu;
  cpu = {.threads = 4, .per_tensor = Seconds{0}, .update_rate = BytesPerSecond{1e8}, .sum_rate = BytesPerSecond{1e8}};
  const Strategy strategy = on_server(lab.model, 1, {1, -1});
  // Pushes end at 0.064 and 0.128, sums at 0.704 and 0.768, updates at 1.344 and 1.408, the last pull at 1.472.
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(1.472, 1e-4));
  // Of 0.6 GB/s both sums may run at a time, but an update leaves too little for anything else: 0.768..1.408..2.048.
  cpu.memory_bandwidth = BytesPerSecond{0.6e9};
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(2.112, 1e-4));
  // However many threads there are besides.
  cpu.threads = 3;
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(2.112, 1e-4));
}

TEST_CASE("a server keeps its host's threads where another host has fewer", "[engine][server][transport]") {
  // Two nodes of one GPU, the server on the first: of each of two tensors two sums and one update, 4 s each on a
  // thread.
  const LabModel lab{{.bytes = 4e6}, {.bytes = 4e6}};
  const auto step_with = [&](int first, int second) {
    Cluster cluster = lab_cluster(1, 1, {.nic = 1e15, .port = 1e15});
    CpuClass& cpu = cluster.groups[0].cpu;
    cpu = {.threads = first,
           .per_tensor = Seconds{0},
           .update_rate = BytesPerSecond{1e6},
           .sum_rate = BytesPerSecond{1e6}};
    cluster.groups.push_back(cluster.groups[0]);
    cluster.groups[1].name = "second";
    cluster.groups[1].cpu.threads = second;
    return step_of(lab, cluster, on_server(lab.model, 2, {0, -1}));
  };
  CHECK_THAT(step_with(4, 4), WithinRel(12.0, 1e-3));
  CHECK_THAT(step_with(4, 1), WithinRel(12.0, 1e-3));
  CHECK_THAT(step_with(1, 4), WithinRel(24.0, 1e-3));
}

TEST_CASE("a server and the workers beside it share the host's threads", "[engine][server][transport]") {
  // Two GPUs of one node, whose host adds their gradients, sums what nodes send and applies it, each 0.64 s for each of
  // two tensors, on one thread.
  constexpr double kWork = 0.64;
  const LabModel lab{{.bytes = 64e6}, {.bytes = 64e6}};
  Cluster cluster = lab_cluster(1, 2, {.nic = 1e15, .port = 1e15});
  CpuClass& cpu = cluster.groups[0].cpu;
  cpu = {.threads = 1, .per_tensor = Seconds{0}, .update_rate = BytesPerSecond{1e8}, .sum_rate = BytesPerSecond{1e8}};
  Strategy strategy = on_server(lab.model, 2, {0, -1});
  for (VariableStrategy& variable : strategy.variables)
    std::get<PsSynchronizer>(variable.shards.front().synchronizer).local_aggregation = true;
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(6 * kWork, 1e-3));
  // Two threads halve that; one tensor after the other would take 3 * 0.64.
  cpu.threads = 2;
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(3 * kWork, 1e-3));
}

TEST_CASE("a host handles one remote call after another", "[engine][server][transport]") {
  // One message of 0.1 GB, 1 GB/s: 0.1 s each way. The host takes 10 ms and, at 1 GB/s, 0.1 s more for each of the two.
  const Cluster cluster = lab_cluster(1, 1, kFast, 1);
  const LabModel lab{{.bytes = 0.1e9}};
  Strategy strategy = on_server(lab.model, 1, {1, -1});
  strategy.graph.rpc = {.per_message = Seconds{0.01}, .rate = BytesPerSecond{1e9}};
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(0.2 + 2 * 0.11, kExact));
  // Two halves, 60 ms of the host each. Pushes: host 0..60..120, wire 60..110 and 120..170. Pulls: wire 110..160 and
  // 170..220, host 160..220 and 220..280.
  const LabModel halves{{.bytes = 0.05e9}, {.bytes = 0.05e9}};
  Strategy two = on_server(halves.model, 1, {1, -1});
  two.graph.rpc = strategy.graph.rpc;
  CHECK_THAT(step_of(halves, cluster, two), WithinRel(0.28, kExact));
}

TEST_CASE("links of a GPU are slower while it computes", "[engine][overlap][transport]") {
  // Two GPUs of a node. Backward: layer 1 4 s, layer 0 16 s; all-reduce 12 and 8 s.
  //   At full rate: comm 1 4..16, comm 0 20..28.
  //   At half of it beside compute: comm 1 has moved 8 of 12 by 20, ends at 24; comm 0 24..32.
  const LabModel lab{{8, 0, 16}, {12, 0, 4}};
  Cluster cluster = lab_cluster(1, 2, kSlow);
  const Strategy strategy = all_reduced(lab.model, 2);
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(28.0, kExact));
  cluster.links.at("port").rate_beside_compute = 0.5;
  for (const Fidelity fidelity : {Fidelity::Steps, Fidelity::Fluid})
    CHECK_THAT(step_of(lab, cluster, strategy, fidelity), WithinRel(32.0, kExact));
  // The next problem of this process finds them at their full rate.
  CHECK_THAT(step_of(lab, lab_cluster(1, 2, kSlow), strategy), WithinRel(28.0, kExact));
}

TEST_CASE("the largest of n normal draws", "[plan][transport]") {
  // 1 / sqrt(pi) of two, 3 / (2 sqrt(pi)) of three; Harter, Biometrika 48, 1961: 1.42360 of eight, 3.24144 of 1000.
  CHECK_THAT(detail::expected_largest(1), WithinAbs(0.0, 1e-9));
  CHECK_THAT(detail::expected_largest(2), WithinRel(0.5641896, 1e-6));
  CHECK_THAT(detail::expected_largest(3), WithinRel(0.8462844, 1e-6));
  CHECK_THAT(detail::expected_largest(8), WithinRel(1.4236, 1e-5));
  CHECK_THAT(detail::expected_largest(1000), WithinRel(3.24144, 1e-5));
}

TEST_CASE("ranks in lock step wait for the slowest of them", "[engine][transport]") {
  // Forward 1 s, backward 3 s, 10 % of standard deviation: two ranks take 4 x (1 + 0.1 x 0.56419) s.
  const LabModel lab{{0, 1, 3}};
  Cluster cluster = lab_cluster(2, 1, kFast);
  cluster.devices.at("GPU").compute_variation = 0.1;
  CHECK_THAT(step_of(lab, cluster, all_reduced(lab.model, 2)), WithinRel(4.0 * 1.0564190, kExact));
  CHECK_THAT(step_of(lab, cluster, all_reduced(lab.model, 1)), WithinRel(4.0, kExact));
}
