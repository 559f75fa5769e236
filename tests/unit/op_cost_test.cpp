// What the ops of a plan carry and cost, each worked out above its check.
#include <algorithm>

#include "sim/plan/compile.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab.hpp"
#include "tests/support/small_problems.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

constexpr std::int64_t kBatch = 16;

/// Layers take no time, so that only communication and servers are left.
Profile idle(const Model& model) {
  Profile profile;
  profile.precision = "fp32";
  profile.batch = kBatch;
  profile.layers.resize(model.layer_count());
  return profile;
}

Plan planned(const Model& model, const Cluster& cluster, const Strategy& strategy) {
  return compile(model, idle(model), cluster, strategy);
}

/// A device whose memory moves 4000 B/s.
Cluster with_memory(Cluster cluster) {
  cluster.devices["GPU"].memory_bandwidth = BytesPerSecond{4000.0};
  return cluster;
}

const Op& only(const Plan& plan, OpKind kind, Phase phase) {
  const auto found = [&](const Op& op) { return op.kind() == kind && op.reason.phase == phase; };
  REQUIRE(std::count_if(plan.ops.begin(), plan.ops.end(), found) == 1);
  return *std::find_if(plan.ops.begin(), plan.ops.end(), found);
}

std::vector<const Op*> collectives(const Plan& plan) {
  std::vector<const Op*> out;
  for (const Op& op : plan.ops)
    if (op.kind() == OpKind::Collective) out.push_back(&op);
  return out;
}

/// A sample looks up 3 of 1000 rows of 10 numbers.
Model table() {
  return sparse_table(10, kBatch);
}

}  // namespace

TEST_CASE("sufficient factors: K (M + N) numbers travel, and each worker multiplies those of the others",
          "[plan][cost][sfb]") {
  // M = 64, N = 16, K = 16 samples, P = 4 workers at 1 Mflop/s of which half is reached, 3 s to launch a collective.
  //   K (M + N) x 4 B = 16 x 80 x 4 = 5,120 B from each. 2 K M N (P - 1) = 98,304 operations: 0.196608 s.
  const Model model = chain({{64, 16}});
  Cluster cluster = lab_cluster(4, 1);
  cluster.devices["GPU"].peak["fp32"] = FlopsPerSecond{1e6};
  cluster.devices["GPU"].compute_efficiency["fp32"] = 0.5;
  cluster.collective.launch = Seconds{3.0};
  Strategy strategy = lab_strategy(model, 4, SfbSynchronizer{});
  strategy.graph.per_operation_cost = Seconds{0.25};
  const Plan plan = planned(model, cluster, strategy);
  const Op& exchange = only(plan, OpKind::Collective, Phase::Synchronize);
  CHECK(exchange.collective().primitive == CollectivePrimitive::AllGather);
  CHECK(exchange.bytes() == 5120.0);
  CHECK_THAT(exchange.collective().setup.value(), WithinRel(3.25, 1e-12));
  const auto rebuild = std::find_if(plan.ops.begin(), plan.ops.end(),
                                    [](const Op& op) { return op.reason.label == "a/weight from factors"; });
  REQUIRE(rebuild != plan.ops.end());
  CHECK_THAT(rebuild->compute().duration.value(), WithinRel(0.196608, 1e-12));
}

TEST_CASE("exchanges of factors take turns on the stream of collectives", "[plan][cost][sfb]") {
  const Model model = chain({{64, 16}, {64, 16}});
  const Plan plan = planned(model, lab_cluster(4, 1), lab_strategy(model, 4, SfbSynchronizer{}));
  int exchanges = 0;
  for (const Op& op : plan.ops) {
    if (op.kind() != OpKind::Collective) continue;
    ++exchanges;
    REQUIRE(op.queue >= 0);
    CHECK(plan.queues[static_cast<std::size_t>(op.queue)].name == "communication");
    CHECK(plan.queues[static_cast<std::size_t>(op.queue)].slots == 1);
  }
  CHECK(exchanges == 2);
}

TEST_CASE("a GPU that serves passes its memory three times to add and five times to update", "[plan][cost][server]") {
  // 4,000 B at 4,000 B/s, 0.5 s to launch a kernel: two operands read and one written, 3.5 s; gradient, momentum and
  // weight read, momentum and weight written, 5.5 s.
  const Model model = chain({{1000}});
  Cluster cluster = with_memory(lab_cluster(2, 1));
  cluster.devices["GPU"].launch = Seconds{0.5};
  const Plan plan = planned(model, cluster, on_server(model, 2, {0, 0}));
  CHECK_THAT(only(plan, OpKind::HostWork, Phase::Aggregate).host().duration.value(), WithinRel(3.5, 1e-12));
  CHECK_THAT(only(plan, OpKind::HostWork, Phase::Update).host().duration.value(), WithinRel(5.5, 1e-12));
}

TEST_CASE("rows travel to servers with an index of 8 bytes each, tables whole", "[plan][cost][sparse]") {
  // 16 samples x 3 rows = 48 rows of 10 x 4 + 8 B: 2,304 B. The table: 1000 x 10 x 4 = 40,000 B.
  const Model model = table();
  const Cluster cluster = lab_cluster(2, 1, {}, 1);
  Strategy strategy = on_server(model, 2, {2, -1});
  CHECK(only(planned(model, cluster, strategy), OpKind::Transfer, Phase::Push).bytes() == 2304.0);
  strategy.variables.front().sparse_as_dense = true;
  CHECK(only(planned(model, cluster, strategy), OpKind::Transfer, Phase::Push).bytes() == 40'000.0);
}

TEST_CASE("rows of a sparse variable are all-gathered, its table is all-reduced", "[plan][cost][sparse]") {
  // 48 rows as above: 48 x 8 = 384 B of indices and 48 x 40 = 1,920 B of values from every rank. A dense matrix of
  // 100 x 5 x 4 = 2,000 B beside it, and everything in one message: rows do not fit into a sum.
  Model model = table();
  add_tensor(model, "fc", {100, 5});
  const Cluster cluster = lab_cluster(2, 1);
  Strategy strategy = all_reduced(model, 2);
  strategy.graph.fusion.kind = FusionKind::Single;
  const Plan rows = planned(model, cluster, strategy);
  const auto apart = collectives(rows);
  REQUIRE(apart.size() == 3);
  CHECK(apart[0]->collective().primitive == CollectivePrimitive::AllReduce);
  CHECK(apart[0]->bytes() == 2000.0);
  CHECK(apart[1]->collective().primitive == CollectivePrimitive::AllGather);
  CHECK(apart[1]->bytes() == 384.0);
  CHECK(apart[2]->collective().primitive == CollectivePrimitive::AllGather);
  CHECK(apart[2]->bytes() == 1920.0);
  strategy.variables.front().sparse_as_dense = true;
  const Plan dense = planned(model, cluster, strategy);
  const auto together = collectives(dense);
  REQUIRE(together.size() == 1);
  CHECK(together[0]->collective().primitive == CollectivePrimitive::AllReduce);
  CHECK(together[0]->bytes() == 42'000.0);
}

TEST_CASE("rows wait for Horovod's cycle like everything else", "[plan][cost][sparse]") {
  // Backward takes 2 s, the loop wakes every 5 s: 3 s of waiting.
  const Model model = table();
  Profile profile = idle(model);
  profile.layers.front().backward = Seconds{2.0};
  Strategy strategy = all_reduced(model, 2);
  strategy.graph.fusion.kind = FusionKind::Cycle;
  strategy.graph.fusion.cycle = Seconds{5.0};
  const Plan plan = compile(model, profile, lab_cluster(2, 1), strategy);
  CHECK_THAT(only(plan, OpKind::HostWork, Phase::Start).host().duration.value(), WithinRel(3.0, 1e-12));
  CHECK(collectives(plan).size() == 2);
}

TEST_CASE("AutoDist's refusal of sparse all-reduces over nodes is told", "[plan][cost][sparse]") {
  const Model model = table();
  Strategy strategy = all_reduced(model, 2);
  strategy.graph.fusion.kind = FusionKind::Groups;
  const Plan apart = planned(model, lab_cluster(2, 1), strategy);
  REQUIRE(apart.notes.size() == 1);
  CHECK_THAT(apart.notes.front(), ContainsSubstring("AutoDist"));
  CHECK(planned(model, lab_cluster(1, 2), strategy).notes.empty());
  strategy.variables.front().sparse_as_dense = true;
  CHECK(planned(model, lab_cluster(2, 1), strategy).notes.empty());
}

TEST_CASE("PowerSGD sends both factors", "[plan][cost][compression]") {
  // 100 x 30, rank 4: (100 + 30) x 4 numbers of 4 B: 2,080 B. Half of the rows: (50 + 30) x 4 x 4 = 1,280 B each.
  const Model model = chain({{100, 30}});
  Strategy strategy = all_reduced(model, 2);
  strategy.variables.front().compressor = Compressor::PowerSgd;
  strategy.variables.front().powersgd_rank = 4;
  CHECK(collectives(planned(model, lab_cluster(2, 1), strategy)).size() == 1);
  const Plan whole = planned(model, lab_cluster(2, 1), strategy);
  CHECK(collectives(whole).front()->bytes() == 2080.0);
  VariableStrategy& entry = strategy.variables.front();
  entry.partition_axis = 0;
  entry.shards = {{1500, AllReduceSynchronizer{}}, {1500, AllReduceSynchronizer{}}};
  const Plan halves = planned(model, lab_cluster(2, 1), strategy);
  REQUIRE(collectives(halves).size() == 2);
  CHECK(collectives(halves).front()->bytes() == 1280.0);
}

TEST_CASE("encoding and decoding read and write what travels", "[plan][cost][compression]") {
  // 1000 numbers in half precision: 2,000 B, read and written twice, 8,000 B at 4,000 B/s: 2 s.
  const Model model = chain({{1000}});
  const Cluster cluster = with_memory(lab_cluster(2, 1, {}, 1));
  const auto with = [&](Strategy strategy, Compressor compressor) {
    strategy.variables.front().compressor = compressor;
    return planned(model, cluster, strategy);
  };
  PsSynchronizer ps;
  ps.server = {2, -1};
  ps.local_replication = true;
  for (const auto& [compressor, bytes, expected] :
       {std::tuple{Compressor::None, 4000.0, 0.0}, {Compressor::Fp16, 2000.0, 2.0}}) {
    const Plan reduced = with(all_reduced(model, 2), compressor);
    const Plan pushed = with(on_server(model, 2, {2, -1}), compressor);
    const Plan hosts = with(lab_strategy(model, 2, ps), compressor);
    const auto down =
        std::find_if(hosts.ops.begin(), hosts.ops.end(), [](const Op& op) { return op.reason.phase == Phase::Copy; });
    for (const Op* op : {&only(reduced, OpKind::Collective, Phase::Synchronize),
                         &only(pushed, OpKind::Transfer, Phase::Push), &*down}) {
      const bool collective = op->kind() == OpKind::Collective;
      const Seconds setup = collective ? op->collective().setup : op->transfer().setup;
      const Seconds packing = collective ? op->collective().packing : op->transfer().packing;
      CHECK(op->bytes() == bytes);
      CHECK_THAT(setup.value(), WithinAbs(expected, 1e-12));
      CHECK_THAT(packing.value(), WithinAbs(expected, 1e-12));
    }
  }
}

TEST_CASE("a bucket of several gradients is copied in and out", "[plan][cost][fusion]") {
  // 400 + 600 B, read and written on the way in and on the way out: 4,000 B at 4,000 B/s, 1 s. In pieces of 250 B: each
  // a quarter of it. A gradient alone needs no copy, nor do those that live in their bucket.
  const Model model = chain({{100}, {150}});
  const Cluster cluster = with_memory(lab_cluster(2, 1));
  Strategy strategy = all_reduced(model, 2);
  const auto packing = [&](FusionKind kind, bool copies, std::int64_t piece) {
    strategy.graph.fusion.kind = kind;
    strategy.graph.fusion.copies = copies;
    strategy.graph.scheduling.partition = Bytes{piece};
    std::vector<double> out;
    const Plan plan = planned(model, cluster, strategy);
    for (const Op* op : collectives(plan)) out.push_back(op->collective().packing.value());
    return out;
  };
  CHECK(packing(FusionKind::Single, true, 0) == std::vector<double>{1.0});
  CHECK(packing(FusionKind::Single, true, 250) == std::vector<double>{0.25, 0.25, 0.25, 0.25});
  CHECK(packing(FusionKind::Single, false, 0) == std::vector<double>{0.0});
  CHECK(packing(FusionKind::None, true, 0) == std::vector<double>{0.0, 0.0});
}

TEST_CASE("gradients are ready for a collective when the slowest device has them", "[plan][cost][heterogeneous]") {
  // Backward 4 s, 8 s on the slow node in the middle; a cycle of 5 s: found at 10 s, 2 s later. All alike: at 5 s, 1 s
  // later.
  const Model model = chain({{100}});
  Profile profile = idle(model);
  profile.layers.front().backward = Seconds{4.0};
  Strategy strategy = all_reduced(model, 3);
  strategy.graph.fusion.kind = FusionKind::Cycle;
  strategy.graph.fusion.cycle = Seconds{5.0};
  Cluster cluster = lab_cluster(1, 1);
  cluster.groups.resize(3, cluster.groups.front());
  cluster.groups[1].name = "slow";
  cluster.groups[2].name = "last";
  const auto wait = [&] {
    const Plan plan = compile(model, profile, cluster, strategy);
    return only(plan, OpKind::HostWork, Phase::Start).host().duration.value();
  };
  CHECK_THAT(wait(), WithinRel(1.0, 1e-12));
  cluster.groups[1].compute_slowdown = 2.0;
  CHECK_THAT(wait(), WithinRel(2.0, 1e-12));
}

TEST_CASE("GPUs of one machine that sum and update by themselves need no server", "[plan][cost][byteps]") {
  // Four all-reduce among each other, one has nothing to do; on two machines gradients go to servers.
  const Model model = chain({{1000}});
  const auto ops = [&](int nodes, int gpus, OpKind kind) {
    const Cluster cluster = lab_cluster(nodes, gpus);
    const Plan plan = planned(model, cluster, build_strategy("byteps", request_for(model, cluster, nodes * gpus)));
    return std::count_if(plan.ops.begin(), plan.ops.end(), [&](const Op& op) { return op.kind() == kind; });
  };
  CHECK(ops(1, 1, OpKind::Transfer) == 0);
  CHECK(ops(1, 1, OpKind::Collective) == 0);
  CHECK(ops(1, 1, OpKind::HostWork) == 0);
  CHECK(ops(1, 4, OpKind::Transfer) == 0);
  CHECK(ops(1, 4, OpKind::Collective) == 2);
  CHECK(ops(2, 1, OpKind::Transfer) > 0);
}
