// Nodes without servers stand for each other where parameter servers take part: random strategies against `fluid`.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/error.hpp"
#include "base/random.hpp"
#include "sim/engine/engine.hpp"
#include "sim/plan/compile.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab.hpp"

using namespace simsync;
using namespace simsync::test;
using Catch::Matchers::WithinRel;

namespace {

bool draw(Random& random, int one_in) {
  return random.below(static_cast<std::size_t>(one_in)) == 0;
}

double draw_between(Random& random, double low, double high) {
  return low + (high - low) * random.unit();
}

/// Ways that GPUs of a node share links, or do not.
void draw_fabric(Random& random, Cluster& cluster) {
  NodeFabric& fabric = cluster.groups.front().fabric;
  if (draw(random, 3)) fabric.gpu_link.clear();
  if (draw(random, 4)) fabric.peer_to_peer = false;
  if (draw(random, 3)) fabric.gpus_per_switch = 1 + static_cast<int>(random.below(4));
  if (draw(random, 4)) {
    fabric.switches_per_socket = 1 + static_cast<int>(random.below(2));
    fabric.socket_link = "pcie";
  }
  if (draw(random, 3)) fabric.memory_link = "pcie";
  if (draw(random, 3)) cluster.groups.front().gpu_direct = false;
}

Cluster draw_cluster(Random& random, int gpus) {
  const int nodes = 3 + static_cast<int>(random.below(4));
  Cluster cluster = lab_cluster(nodes, gpus, {.nic = 1e9, .nic_latency = 1e-5, .port = 5e9, .port_latency = 1e-6},
                                1 + static_cast<int>(random.below(2)));
  if (draw(random, 2)) cluster.links["pcie"].bandwidth = BytesPerSecond{3e9};
  draw_fabric(random, cluster);
  if (draw(random, 3)) cluster.links["nic"].per_flow_cap = BytesPerSecond{3e8};
  for (NodeGroup& group : cluster.groups) {
    constexpr std::array kThreads{1, 2, 64};
    group.cpu.threads = kThreads.at(random.below(kThreads.size()));
    if (draw(random, 2)) group.cpu.sum_rate = BytesPerSecond{2e9};
    if (draw(random, 2)) group.cpu.update_rate = BytesPerSecond{1e9};
    if (draw(random, 6)) group.cpu.per_tensor = Seconds{2e-5};
    if (draw(random, 6)) group.cpu.dispatch_latency = Seconds{3e-5};
    if (draw(random, 8)) group.cpu.send_ahead = Seconds{0.1};
  }
  if (draw(random, 3)) {  // the last two nodes with GPUs are slower
    NodeGroup slow = cluster.groups.front();
    slow.count = 2;
    slow.compute_slowdown = draw_between(random, 1.1, 2.0);
    cluster.groups.front().count -= 2;
    cluster.groups.insert(cluster.groups.begin() + 1, slow);
  }
  return cluster;
}

/// Layers of which some are alike, so that much happens at one instant.
LabModel draw_model(Random& random) {
  std::vector<LabLayer> layers;
  const std::size_t count = 2 + random.below(5);
  for (std::size_t i = 0; i < count; ++i) {
    LabLayer layer{.bytes = 4e3 * std::floor(draw_between(random, 1.0, 1e3)),
                   .forward = draw_between(random, 1e-4, 3e-3),
                   .backward = draw(random, 3) ? 0.0 : draw_between(random, 1e-4, 3e-3)};
    if (i > 0 && draw(random, 3)) layer.bytes = layers.back().bytes;
    layers.push_back(layer);
  }
  return LabModel(layers);
}

void draw_graph(Random& random, GraphStrategy& graph) {
  graph.streams_per_server = static_cast<int>(random.below(3));
  graph.parallel_host_ops = draw(random, 2);
  graph.update_at = draw(random, 2) ? UpdateAt::Worker : UpdateAt::Server;
  graph.pull_at_step_start = graph.update_at == UpdateAt::Server && draw(random, 2);
  if (!graph.pull_at_step_start && draw(random, 2)) graph.gate = Gate::PerVariable;
  graph.aggregate_on_gpu = draw(random, 3);
  if (draw(random, 3)) graph.win_bytes = Bytes{1 << 16};
  if (draw(random, 3)) graph.rpc = {.per_message = Seconds{2e-5}, .rate = BytesPerSecond{4e9}};
  if (draw(random, 3)) {
    graph.scheduling.ordering = Ordering::Priority;
    graph.scheduling.partition = Bytes{500'000};
    graph.scheduling.credit = Bytes{draw(random, 2) ? 1 : 1'000'000};
  }
}

Strategy draw_strategy(Random& random, const Model& model, const Cluster& cluster, int workers) {
  Strategy strategy = lab_strategy(model, workers, PsSynchronizer{});
  draw_graph(random, strategy.graph);
  const int gpu_nodes = cluster.gpu_count() / cluster.groups.front().gpus;
  const bool on_workers = draw(random, 2);
  const bool aggregates = draw(random, 2);
  const bool replicates = draw(random, 2);
  int priority = 0;
  for (VariableStrategy& how : strategy.variables) {
    how.priority = priority++;
    if (draw(random, 20)) {
      how.shards.front().synchronizer = AllReduceSynchronizer{.algorithm = CollectiveAlgorithm::Ring};
      continue;
    }
    auto& ps = std::get<PsSynchronizer>(how.shards.front().synchronizer);
    ps.server = {on_workers ? static_cast<int>(random.below(2)) : gpu_nodes, -1};
    ps.local_aggregation = aggregates;
    ps.local_replication = replicates;
  }
  return strategy;
}

struct Drawn {
  Cluster cluster;
  Plan plan;
};

/// Nothing where the parts do not fit together.
std::optional<Drawn> draw_problem(Random& random) {
  const int gpus = 1 + static_cast<int>(random.below(4));
  Drawn out{draw_cluster(random, gpus), {}};
  const LabModel lab = draw_model(random);
  const Strategy strategy = draw_strategy(random, lab.model, out.cluster, out.cluster.gpu_count());
  try {
    out.plan = compile(lab.model, lab.profile, out.cluster, strategy);
  } catch (const PlanError&) {
    return std::nullopt;
  }
  return out;
}

}  // namespace

TEST_CASE("random plans with servers fold as they are simulated in full", "[groups][fidelity]") {
  Random random(21);
  int folded = 0;
  int of_one_rank = 0;  // of several on every simulated node
  int simulated = 0;
  int ranks = 0;
  constexpr int kPlans = 1000;
  for (int i = 0; i < kPlans; ++i) {
    const auto drawn = draw_problem(random);
    if (!drawn) continue;
    const Prediction chosen = replay(drawn->plan, drawn->cluster, {.solver = Solver::Native, .max_iterations = 3});
    if (chosen.fidelity != Fidelity::Folded) continue;
    ++folded;
    simulated += chosen.simulated_ranks;
    const int per_node = drawn->plan.rank_count() / static_cast<int>(drawn->plan.nodes.size());
    if (per_node > 1 && chosen.simulated_ranks <= static_cast<int>(drawn->plan.nodes.size())) ++of_one_rank;
    ranks += drawn->plan.rank_count();
    CAPTURE(i);
    const Prediction full = replay(drawn->plan, drawn->cluster,
                                   {.fidelity = Fidelity::Fluid, .solver = Solver::Native, .max_iterations = 3});
    REQUIRE_THAT(chosen.step.value(), WithinRel(full.step.value(), 1e-9));
  }
  CAPTURE(folded, of_one_rank, simulated, ranks);
  CHECK(folded > kPlans / 5);
  CHECK(of_one_rank > kPlans / 10);
  CHECK(simulated < ranks);
}

TEST_CASE("both solvers take the same steps on random plans with servers", "[groups][network]") {
  Random random(22);
  double largest = 0.0;
  int count = 0;
  while (count < 500) {
    const auto drawn = draw_problem(random);
    if (!drawn) continue;
    ++count;
    CAPTURE(count);
    const ReplayOptions options{.fidelity = Fidelity::Fluid, .solver = Solver::Native, .max_iterations = 3};
    ReplayOptions reference = options;
    reference.solver = Solver::SimGrid;
    const double own = replay(drawn->plan, drawn->cluster, options).step.value();
    const double theirs = replay(drawn->plan, drawn->cluster, reference).step.value();
    CHECK_THAT(own, WithinRel(theirs, 1e-6));
    largest = std::max(largest, std::abs(own / theirs - 1.0));
  }
  INFO("largest difference " << largest);
  CHECK(largest < 1e-6);
}

TEST_CASE("a server's links carry what all nodes send that one stands for", "[groups][fidelity]") {
  // 1 MB to a server of its own from each of 64 nodes, and back: 64 MB through its port of 1 GB/s each way, 128 ms,
  // beside 10 ms of compute. Between them one thread of the server sums 64 gradients that have all arrived at once. Its
  // update, at 1e15 B/s, takes a nanosecond.
  Cluster cluster = lab_cluster(64, 1, {.nic = 1e9}, 1);
  cluster.groups.back().cpu.threads = 1;
  cluster.groups.back().cpu.sum_rate = BytesPerSecond{3e9};
  const LabModel lab{{.bytes = 1e6, .forward = 4e-3, .backward = 6e-3}};
  const Plan plan = compile(lab.model, lab.profile, cluster, on_server(lab.model, 64, {64, -1}));
  const double sum = 1e6 / 3e9;
  const Prediction folded = replay(plan, cluster, {.solver = Solver::Native});
  CHECK(folded.fidelity == Fidelity::Folded);
  CHECK(folded.simulated_ranks == 1);
  CHECK_THAT(folded.step.value(), WithinRel(0.010 + 2 * 0.064 + 64 * sum, 1e-7));
  const Prediction full = replay(plan, cluster, {.solver = Solver::SimGrid});
  CHECK(full.fidelity == Fidelity::Fluid);
  CHECK_THAT(full.step.value(), WithinRel(folded.step.value(), 1e-7));
  CHECK_THROWS_WITH(replay(plan, cluster, {.fidelity = Fidelity::Folded, .solver = Solver::SimGrid}),
                    "fidelity 'folded': nodes cannot stand for each other here: on links of parameter servers SimGrid "
                    "counts a flow once, whomever it stands for; --set solver=native folds it");
}

namespace {

/// Servers on the hosts of two nodes of four GPUs serve nodes: gradients are summed on the GPUs, or on their hosts.
Prediction served_nodes(const Cluster& cluster, bool on_gpu, Solver solver = Solver::Native) {
  const LabModel lab{{.bytes = 4e6, .forward = 1e-3, .backward = 2e-3},
                     {.bytes = 8e6, .forward = 2e-3, .backward = 1e-3}};
  Strategy strategy = lab_strategy(lab.model, 8, PsSynchronizer{.local_replication = true, .local_aggregation = true});
  strategy.graph.aggregate_on_gpu = on_gpu;
  strategy.graph.update_at = UpdateAt::Worker;
  for (std::size_t i = 0; i < strategy.variables.size(); ++i)
    std::get<PsSynchronizer>(strategy.variables[i].shards.front().synchronizer).server = {static_cast<int>(i), -1};
  return replay(compile(lab.model, lab.profile, cluster, strategy), cluster, {.solver = solver});
}

}  // namespace

TEST_CASE("one GPU of a node stands for all where servers serve nodes", "[groups][fidelity]") {
  // Four GPUs copy at once through one memory of 12 GB/s, each at 3 GB/s. So does the one that stands for them.
  Cluster cluster = lab_cluster(2, 4, {.nic = 1e9, .port = 5e9});
  cluster.links["memory"] = cluster.links["pcie"];
  cluster.links["memory"].bandwidth = BytesPerSecond{12e9};
  cluster.groups.front().fabric.memory_link = "memory";
  for (const bool on_gpu : {false, true}) {
    CAPTURE(on_gpu);
    const Prediction folded = served_nodes(cluster, on_gpu);
    const Prediction full = served_nodes(cluster, on_gpu, Solver::SimGrid);
    CHECK(folded.simulated_ranks == 2);
    CHECK(full.simulated_ranks == 8);
    CHECK_THAT(folded.step.value(), WithinRel(full.step.value(), 1e-7));
  }
}

TEST_CASE("of GPUs on two switches those of one stand for the others", "[groups][fidelity]") {
  // Two GPUs on each of two switches: those of one switch share its uplink, and a ring crosses it every second hop. So
  // they differ, but the switches do not.
  Cluster cluster = lab_cluster(2, 4, {.nic = 1e9});
  cluster.links["pcie"].bandwidth = BytesPerSecond{3e9};
  cluster.groups.front().fabric.gpu_link.clear();
  cluster.groups.front().fabric.gpus_per_switch = 2;
  const Prediction own = served_nodes(cluster, true);
  CHECK(own.simulated_ranks == 4);
  CHECK_THAT(own.step.value(), WithinRel(served_nodes(cluster, true, Solver::SimGrid).step.value(), 1e-7));
}
