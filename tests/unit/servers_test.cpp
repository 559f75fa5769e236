// Parameter servers: what crosses the busiest NIC, what the server's processor adds, and when factors are cheaper.
#include <numeric>

#include "strategies/partition.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab_run.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

constexpr double kExact = 1e-6;                // a GPU's own PCIe link has a rate, too
const LabLinks kOne{.nic = 1e9, .port = 1e9};  ///< 1 GB/s: times in s are amounts in GB

/// `servers` shards of equal size, dealt to the hosts of nodes `first`, `first` + 1, ...
Strategy sharded(const Model& model, int workers, int first, int servers, bool hosts) {
  Strategy strategy = on_server(model, workers, {first, -1});
  for (auto& entry : strategy.variables) {
    PsSynchronizer ps = std::get<PsSynchronizer>(entry.shards.front().synchronizer);
    ps.local_aggregation = ps.local_replication = hosts;
    const std::int64_t each = entry.shards.front().elements / servers;
    entry.shards.clear();
    entry.partition_axis = servers > 1 ? kFlatAxis : kWholeVariable;
    for (int server = 0; server < servers; ++server) {
      ps.server = {first + server, -1};
      entry.shards.push_back({each, ps});
    }
  }
  return strategy;
}

/// Communication of n GPU and k spare machines over M/B, the model in `rounds` times as many pieces as machines. In
/// each round every server gets a piece in proportion to its part; two rounds may be in flight where servers differ.
double byteps_time(int n, int k, int rounds) {
  constexpr double kModel = 0.1e9;
  const LabModel lab{{.bytes = kModel}};
  Strategy strategy = on_server(lab.model, n, {0, -1});
  VariableStrategy& entry = strategy.variables.front();
  PsSynchronizer ps = std::get<PsSynchronizer>(entry.shards.front().synchronizer);
  std::int64_t left = entry.shards.front().elements;
  const double round = static_cast<double>(left) / rounds;
  entry.shards.clear();
  entry.partition_axis = kFlatAxis;
  for (int r = 0; r < rounds; ++r) {
    for (int machine = 0; machine < n + k; ++machine) {
      const double part = machine < n ? n - k : 2.0 * (n - 1);
      const auto elements = static_cast<std::int64_t>(round * part / (n * n + k * n - 2.0 * k));
      if (elements == 0) continue;
      ps.server = {machine, -1};
      entry.shards.push_back({elements, ps});
      left -= elements;
    }
  }
  entry.shards.back().elements += left;
  strategy.graph.streams_per_server = 2 * (n + k);  // no message waits for another of its connection
  strategy.graph.update_at = UpdateAt::Worker;      // BytePS's servers only sum
  const bool alike = k == 0 || k == n;
  strategy.graph.scheduling.credit = Bytes{static_cast<std::int64_t>((alike ? 1.0 : 2.0) * kModel / rounds)};
  return step_of(lab, lab_cluster(n, 1, kOne, k), strategy) / (kModel / kOne.nic);
}

}  // namespace

TEST_CASE("one server receives and sends n models", "[engine][server]") {
  // n x M over the server's NIC, then the same back: 2 n M / B. M = 0.2 GB.
  for (const int n : {1, 2, 4, 8}) {
    const LabModel lab{{.bytes = 0.2e9}};
    CHECK_THAT(step_of(lab, lab_cluster(n, 1, kOne, 1), on_server(lab.model, n, {n, -1})),
               WithinRel(2.0 * n * 0.2, kExact));
  }
}

TEST_CASE("a worker that queues its messages hears and asks across the network", "[engine][server]") {
  // One worker, its server on another host, L = 10 ms one way. Without a queue: push and pull, L + 0.1 s each.
  const Cluster cluster = lab_cluster(1, 1, {.nic = 1e9, .nic_latency = 0.01, .port = 1e9}, 1);
  const LabModel lab{{.bytes = 0.1e9}};
  Strategy strategy = on_server(lab.model, 1, {1, -1});
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(0.2 + 2 * 0.01, kExact));
  // With one, the worker is told of the update (L) and asks for the value (L): 0.2 s and 4 L.
  strategy.graph.scheduling.ordering = Ordering::Priority;
  strategy.graph.scheduling.credit = Bytes{1};
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(0.2 + 4 * 0.01, kExact));
  // Two halves, one in service per direction. Push: 0 to L + .05, answered at 2 L + .05; the second arrives at 3 L +
  // .1. Pull: told at 2 L + .05, asked, there at 4 L + .1; the second is told of then, asked, there at 6 L + .15.
  const LabModel halves{{.bytes = 0.05e9}, {.bytes = 0.05e9}};
  Strategy two = on_server(halves.model, 1, {1, -1});
  two.graph.scheduling = strategy.graph.scheduling;
  CHECK_THAT(step_of(halves, cluster, two), WithinRel(0.15 + 6 * 0.01, kExact));
}

TEST_CASE("a GPU of the server's own node does not use the network", "[engine][server]") {
  // Two nodes, the server on the first: only the other worker's 0.2 GB cross a NIC, there and back.
  const LabModel lab{{.bytes = 0.2e9}};
  CHECK_THAT(step_of(lab, lab_cluster(2, 1, kOne), on_server(lab.model, 2, {0, -1})), WithinRel(0.4, 1e-3));
}

TEST_CASE("servers on all hosts share the load", "[engine][server]") {
  // P = 4 hosts hold M/4 each: M (P-1)/P out of and into every NIC for the pushes, the same for the pulls:
  // 2 x 0.4 x 3/4 = 0.6 s, whether one variable is cut in four or four variables lie one on each host.
  const Cluster cluster = lab_cluster(4, 1, kOne);
  const LabModel whole{{.bytes = 0.4e9}};
  CHECK_THAT(step_of(whole, cluster, sharded(whole.model, 4, 0, 4, false)), WithinRel(0.6, 1e-3));
  const LabModel four{{.bytes = 0.1e9}, {.bytes = 0.1e9}, {.bytes = 0.1e9}, {.bytes = 0.1e9}};
  Strategy dealt = on_server(four.model, 4, {0, -1});
  for (auto& entry : dealt.variables)
    std::get<PsSynchronizer>(entry.shards.front().synchronizer).server.node = static_cast<int>(entry.variable);
  CHECK_THAT(step_of(four, cluster, dealt), WithinRel(0.6, 1e-3));
}

TEST_CASE("local aggregation and a proxy send one message per host", "[engine][server]") {
  // 2 nodes of 4 GPUs, M = 0.1 GB: 8 M there and 8 M back without, 2 M and 2 M with both, 2 M and 8 M with the first.
  // A host's connection serves one message at a time. Without aggregation a GPU whose value came first pushes while the
  // others still wait for theirs; only the push of each host's last GPU is left: 8 M + 2 M.
  const LabModel lab{{.bytes = 0.1e9}};
  const Cluster cluster = lab_cluster(2, 4, kOne, 1);
  CHECK_THAT(step_of(lab, cluster, on_server(lab.model, 8, {2, -1})), WithinRel(1.0, 1e-3));
  Strategy strategy = sharded(lab.model, 8, 2, 1, true);
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(0.4, 1e-3));
  std::get<PsSynchronizer>(strategy.variables[0].shards[0].synchronizer).local_replication = false;
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(1.0, 1e-3));
}

TEST_CASE("a host sums its GPUs' gradients one after another", "[engine][server]") {
  // 4 GPUs, 400 B at 4000 B/s: three additions of 0.1 s before the push; the server adds the one message (0.1 s).
  const LabModel lab{{.bytes = 400}};
  Cluster cluster = lab_cluster(1, 4, kOne, 1);
  for (auto& group : cluster.groups) group.cpu.sum_rate = BytesPerSecond{4000.0};
  CHECK_THAT(step_of(lab, cluster, sharded(lab.model, 4, 1, 1, true)), WithinAbs(0.4, 1e-5));
  // Summed by the GPUs themselves only the server's 0.1 s are left.
  Strategy on_gpu = sharded(lab.model, 4, 1, 1, true);
  on_gpu.graph.aggregate_on_gpu = true;
  CHECK_THAT(step_of(lab, cluster, on_gpu), WithinAbs(0.1, 1e-5));
}

TEST_CASE("of unequal hosts the slowest is charged for all, and the plan says so", "[engine][server]") {
  // Two nodes of 2 GPUs, 400 B: one addition on each host, at 4000 B/s on the first and 1000 B/s on the second: 0.4 s.
  // The server's own sums take no time.
  const LabModel lab{{.bytes = 400}};
  Cluster cluster = lab_cluster(2, 2, kOne, 1);
  cluster.groups.insert(cluster.groups.begin(), cluster.groups.front());
  cluster.groups[0].count = cluster.groups[1].count = 1;
  cluster.groups[1].name = "slow";
  cluster.groups[0].cpu.sum_rate = BytesPerSecond{4000.0};
  cluster.groups[1].cpu.sum_rate = BytesPerSecond{1000.0};
  const Strategy strategy = sharded(lab.model, 4, 2, 1, true);
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(0.4, 1e-3));
  CHECK(compile(lab.model, lab.profile, cluster, strategy).notes.size() == 1);
  std::swap(cluster.groups[0].cpu, cluster.groups[1].cpu);
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(0.4, 1e-3));
}

TEST_CASE("a server's threads are busy per tensor and per byte", "[engine][server]") {
  // 4 tensors of 400 B, each: sum 0.1 (per tensor) + 400/4000 = 0.2 s, update 400/2000 = 0.2 s, answering a pull 0.1 s.
  // That is 2 s of work: sums of all, then updates, then pulls: 2 threads take 1.0 s, one 2.0 s; four or more 0.5 s.
  const LabModel lab{{.bytes = 400}, {.bytes = 400}, {.bytes = 400}, {.bytes = 400}};
  Cluster cluster = lab_cluster(1, 1, kOne, 1);
  cluster.groups[1].cpu = {.threads = 1,
                           .per_tensor = Seconds{0.1},
                           .update_rate = BytesPerSecond{2000.0},
                           .sum_rate = BytesPerSecond{4000.0}};
  for (const auto& [threads, expected] : {std::pair{1, 2.0}, {2, 1.0}, {4, 0.5}, {8, 0.5}}) {
    cluster.groups[1].cpu.threads = threads;
    CHECK_THAT(step_of(lab, cluster, on_server(lab.model, 1, {1, -1})), WithinAbs(expected, 1e-5));
  }
  // Two workers: two sums per tensor (8 x 0.2), one update (4 x 0.2), two pulls (8 x 0.1): 3.2 s on one thread.
  cluster = lab_cluster(2, 1, kOne, 1);
  cluster.groups[1].cpu = {.threads = 1,
                           .per_tensor = Seconds{0.1},
                           .update_rate = BytesPerSecond{2000.0},
                           .sum_rate = BytesPerSecond{4000.0}};
  CHECK_THAT(step_of(lab, cluster, on_server(lab.model, 2, {2, -1})), WithinAbs(3.2, 1e-5));
}

TEST_CASE("all that arrives waits for a server's thread to wake up, at the same time", "[engine][server]") {
  // Once before the sums, once before the answers, however many tensors, workers and threads there are.
  const LabModel lab{{.bytes = 400}, {.bytes = 400}, {.bytes = 400}, {.bytes = 400}};
  for (const int workers : {1, 3}) {
    Cluster cluster = lab_cluster(workers, 1, kOne, 1);
    cluster.groups[1].cpu = {.threads = 1,
                             .per_tensor = Seconds{0.0},
                             .dispatch_latency = Seconds{0.1},
                             .update_rate = BytesPerSecond{1e12},
                             .sum_rate = BytesPerSecond{1e12}};
    CHECK_THAT(step_of(lab, cluster, on_server(lab.model, workers, {workers, -1})), WithinAbs(0.2, 1e-4));
  }
  // A GPU that keeps variables has no threads to wake.
  Cluster cluster = lab_cluster(2, 1, kOne);
  const double without = step_of(lab, cluster, on_server(lab.model, 2, {0, 0}));
  cluster.groups[0].cpu.dispatch_latency = Seconds{0.1};
  CHECK(step_of(lab, cluster, on_server(lab.model, 2, {0, 0})) == without);
}

TEST_CASE("gradients of one shard are added one after another", "[engine][server]") {
  // 4 workers, 400 B at 4000 B/s: four additions of 0.1 s to one accumulator, whatever the threads. Two tensors are
  // added side by side by two threads and in turn by one.
  const LabModel one{{.bytes = 400}};
  const LabModel two{{.bytes = 400}, {.bytes = 400}};
  Cluster cluster = lab_cluster(4, 1, kOne, 1);
  cluster.groups[1].cpu.sum_rate = BytesPerSecond{4000.0};
  for (const int threads : {1, 2, 8}) {
    cluster.groups[1].cpu.threads = threads;
    CHECK_THAT(step_of(one, cluster, on_server(one.model, 4, {4, -1})), WithinAbs(0.4, 1e-5));
    CHECK_THAT(step_of(two, cluster, on_server(two.model, 4, {4, -1})), WithinAbs(threads == 1 ? 0.8 : 0.4, 1e-5));
  }
}

TEST_CASE("all transfers between two nodes share the streams of their connection", "[engine][server]") {
  // One stream reaches 0.25 GB/s of 1 GB/s. 4 tensors of 0.1 GB pushed at once, then pulled: 0.4 GB each way.
  //   one stream serves tensor after tensor, 0.4 s each: pushes end at 0.4 ... 1.6 s and every pull follows its push:
  //   1.6 + 0.4 s. Two streams: pairs of pushes end at 0.4 and 0.8 s, the last pulls at 1.2 s. Four fill the NIC:
  //   pushes and pulls 0.4 s each, and eight are no faster.
  const LabModel lab{{.bytes = 0.1e9}, {.bytes = 0.1e9}, {.bytes = 0.1e9}, {.bytes = 0.1e9}};
  Cluster cluster = lab_cluster(1, 1, kOne, 1);
  cluster.links["nic"].per_flow_cap = BytesPerSecond{0.25e9};
  Strategy strategy = on_server(lab.model, 1, {1, -1});
  for (const auto& [streams, expected] : {std::pair{1, 2.0}, {2, 1.2}, {4, 0.8}, {8, 0.8}}) {
    strategy.graph.streams_per_server = streams;
    CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(expected, kExact));
  }
  // Two workers have a connection each: 2 x 0.25 GB/s into the server, so no slower than one.
  strategy = on_server(lab.model, 2, {2, -1});
  Cluster two = lab_cluster(2, 1, kOne, 1);
  two.links["nic"].per_flow_cap = BytesPerSecond{0.25e9};
  CHECK_THAT(step_of(lab, two, strategy), WithinRel(2.0, kExact));
}

TEST_CASE("a server's answers wait for its host's pushes where both are one process", "[engine][server]") {
  // Two hosts with a worker and a server each, and two of four tensors of 0.1 GB on each server. A connection reaches
  // 0.25 GB/s of 1 GB/s, a tensor takes 0.4 s. Each way two pushes and two pulls of the other host's tensors:
  //   one process, one connection each way: 4 x 0.4 s. Two processes: a pull leaves as soon as its push has come,
  //   beside the next push: 0.4 s and then 2 x 0.4 s.
  const LabModel lab{{.bytes = 0.1e9}, {.bytes = 0.1e9}, {.bytes = 0.1e9}, {.bytes = 0.1e9}};
  Cluster cluster = lab_cluster(2, 1, kOne);
  cluster.links["nic"].per_flow_cap = BytesPerSecond{0.25e9};
  Strategy strategy = on_server(lab.model, 2, {0, -1});
  for (const std::size_t id : {2U, 3U})
    std::get<PsSynchronizer>(strategy.variables[id].shards.front().synchronizer).server = {1, -1};
  strategy.graph.shared_process = true;
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(1.6, kExact));
  strategy.graph.shared_process = false;
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(1.2, kExact));
}

TEST_CASE("BytePS: spare machines shorten communication to 2n(n-1) M / ((n^2 + kn - 2k) B)",
          "[engine][server][byteps]") {
  // Per machine a GPU machine serves (n-k) and a spare one 2(n-1) parts of n^2 + kn - 2k. A GPU machine's NIC sends all
  // that it does not serve itself, and its own part to the n-1 others: 1 + (n-2)(n-k)/(n^2 + kn - 2k) M, which is the
  // formula; a spare machine receives n times its part, the same. Identities t / (M/B), n = 4: 1.5, 1.2, 1.0 for
  // k = 0, 2, 4; n = 8: 1.75, 56/44, 1.0 for k = 0, 4, 8.
  //
  // That is the time when pushes and pulls overlap perfectly, as they do in the limit of many small pieces. Alike
  // servers: of R rounds only the first push and the last pull stand alone, t (1 + 1/R).
  for (const auto& [n, k, identity] : {std::tuple{4, 0, 1.5}, {4, 4, 1.0}, {8, 0, 1.75}, {8, 8, 1.0}}) {
    INFO("n = " << n << ", k = " << k);
    const double time = byteps_time(n, k, 50);
    CHECK(time >= identity * (1.0 - 1e-3));
    CHECK(time <= identity * (1.0 + 1.0 / 50) * (1.0 + 1e-3));
  }
  // Unlike servers: workers drift apart within what the credit lets them have in flight, 2 M/R. The excess shrinks with
  // it: a quarter of the credit leaves less than half of the excess, and never less than nothing.
  for (const auto& [n, k, identity] : {std::tuple{4, 2, 1.2}, {8, 4, 56.0 / 44.0}}) {
    INFO("n = " << n << ", k = " << k);
    const double coarse = byteps_time(n, k, 25) - identity;
    const double fine = byteps_time(n, k, 100) - identity;
    CHECK(fine > 0.0);
    CHECK(fine < coarse / 2.0);
  }
}

TEST_CASE("sufficient factors win while there are fewer than 2MN / (K(M+N)) workers", "[engine][server][sfb]") {
  // M = N = 64, K = 16: 2 x 4096 / (16 x 128) = 4 workers. Each on its own node, shards of the matrix on all hosts.
  //   factors: P-1 rounds of K (M+N) x 4 = 8,192 B. servers: 2 x 16,384 (P-1)/P B, pushes before pulls.
  //   P = 2: 8,192 against 16,384. P = 4: 24,576 both. P = 8: 57,344 against 28,672. At 1 MB/s.
  LabModel lab{{.bytes = 64 * 64 * 4}};
  lab.profile.batch = 16;
  Model model("dense", 16, "sample");
  Layer layer;
  layer.name = "fc";
  layer.kind = LayerKind::Dense;
  layer.dense_rows = 1.0;
  Variable weight;
  weight.name = "fc/weight";
  weight.shape = {64, 64};
  weight.layer = model.add_layer(layer, {});
  model.add_variable(weight);
  lab.model = model;
  for (const auto& [p, factors, servers] :
       {std::tuple{2, 8192e-6, 16384e-6}, {4, 24576e-6, 24576e-6}, {8, 57344e-6, 28672e-6}}) {
    const Cluster cluster = lab_cluster(p, 1, {.nic = 1e6});
    CHECK_THAT(step_of(lab, cluster, lab_strategy(lab.model, p, SfbSynchronizer{})), WithinRel(factors, 1e-3));
    CHECK_THAT(step_of(lab, cluster, sharded(lab.model, p, 0, p, false)), WithinRel(servers, 1e-3));
  }
}
