// What compile writes: which ops, for whom, after what.
#include "sim/plan/compile.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab.hpp"

using namespace simsync;
using namespace simsync::test;
using Catch::Matchers::WithinRel;

namespace {

std::vector<const Op*> ops_of(const Plan& plan, Phase phase, OpKind kind) {
  std::vector<const Op*> out;
  for (const Op& op : plan.ops)
    if (op.reason.phase == phase && op.kind() == kind) out.push_back(&op);
  return out;
}

bool waits_for(const Plan& plan, const Op& op, const std::string& label, Phase phase, int lag) {
  return std::any_of(op.after.begin(), op.after.end(), [&](const After& after) {
    const Op& before = plan.ops[static_cast<std::size_t>(after.op)];
    const auto* work = std::get_if<Compute>(&before.body);
    const std::vector<ComputePart> parts = work != nullptr ? work->parts : std::vector<ComputePart>{};
    const bool named =
        before.reason.label == label || std::any_of(parts.begin(), parts.end(), [&](const ComputePart& part) {
          return "layer" + std::to_string(part.layer) == label && part.phase == phase;
        });
    return after.lag == lag && named && (before.reason.phase == phase || !parts.empty());
  });
}

Plan compiled(const LabModel& lab, const Cluster& cluster, const Strategy& strategy) {
  return compile(lab.model, lab.profile, cluster, strategy);
}

}  // namespace

TEST_CASE("a gradient leaves after its layer's backward, or after all of it without overlap", "[plan][compile]") {
  const LabModel lab{{.bytes = 400, .forward = 1, .backward = 1}, {.bytes = 800, .forward = 1, .backward = 1}};
  const Cluster cluster = lab_cluster(2, 1);
  Strategy strategy = all_reduced(lab.model, 2);
  const Plan overlapped = compiled(lab, cluster, strategy);
  const auto eager = ops_of(overlapped, Phase::Synchronize, OpKind::Collective);
  REQUIRE(eager.size() == 2);
  CHECK(eager[0]->bytes() == 800.0);  // the last layer's gradient is ready first
  CHECK(waits_for(overlapped, *eager[0], "layer1", Phase::Backward, 0));
  CHECK(waits_for(overlapped, *eager[1], "layer0", Phase::Backward, 0));
  strategy.graph.overlap = Overlap::None;
  const Plan serial = compiled(lab, cluster, strategy);
  for (const Op* op : ops_of(serial, Phase::Synchronize, OpKind::Collective))
    CHECK(waits_for(serial, *op, "layer0", Phase::Backward, 0));
}

TEST_CASE("with local aggregation and a proxy one message per host goes each way", "[plan][compile]") {
  // 2 nodes of 4 GPUs and a server: the push and the pull are ops of nodes; without both they are ops of ranks.
  const LabModel lab{{.bytes = 400}};
  const Cluster cluster = lab_cluster(2, 4, {}, 1);
  PsSynchronizer ps;
  ps.server = {2, -1};
  ps.local_replication = true;
  const Plan hosts = compiled(lab, cluster, lab_strategy(lab.model, 8, ps));
  CHECK(ops_of(hosts, Phase::Push, OpKind::Transfer).at(0)->grouping == kEachNode);
  CHECK(ops_of(hosts, Phase::Pull, OpKind::Transfer).at(0)->grouping == kEachNode);
  CHECK(ops_of(hosts, Phase::Copy, OpKind::Transfer).size() == 2);
  CHECK(hosts.servers == std::vector<Place>{{2, -1}});
  const Plan devices = compiled(lab, cluster, on_server(lab.model, 8, {2, -1}));
  CHECK(ops_of(devices, Phase::Push, OpKind::Transfer).at(0)->grouping == kEachRank);
  CHECK(ops_of(devices, Phase::Pull, OpKind::Transfer).at(0)->grouping == kEachRank);
  CHECK(ops_of(devices, Phase::Copy, OpKind::Transfer).empty());
}

TEST_CASE("devices get all of a variable of which hosts keep a part", "[plan][compile]") {
  // 400 B on one server, 240 of them refreshed on hosts: these come to each host once and from there to its devices,
  // the other 160 to every device.
  const LabModel lab{{.bytes = 400}};
  const Cluster cluster = lab_cluster(2, 4, {}, 1);
  PsSynchronizer kept;
  kept.server = {2, -1};
  kept.local_replication = true;
  PsSynchronizer read = kept;
  read.local_replication = false;
  Strategy strategy = lab_strategy(lab.model, 8, kept);
  strategy.variables[0].shards = {{.elements = 60, .synchronizer = kept}, {.elements = 40, .synchronizer = read}};
  strategy.variables[0].partition_axis = 0;
  for (const bool at_start : {false, true}) {
    CAPTURE(at_start);
    strategy.graph.pull_at_step_start = at_start;
    const Plan plan = compiled(lab, cluster, strategy);
    std::map<GroupingId, double> pulled;
    for (const Op* op : ops_of(plan, Phase::Pull, OpKind::Transfer)) pulled[op->grouping] += op->bytes();
    CHECK(pulled == std::map<GroupingId, double>{{kEachRank, 160.0}, {kEachNode, 240.0}});
    double to_device = 0.0;
    for (const Op* op : ops_of(plan, Phase::Copy, OpKind::Transfer))
      if (op->transfer().to.kind == End::Kind::Device) to_device += op->bytes();
    CHECK(to_device == 240.0);
  }
}

TEST_CASE("hosts sum the parts that they aggregate, in whatever order shards stand", "[plan][compile]") {
  const LabModel lab{{.bytes = 400}};
  const Cluster cluster = lab_cluster(2, 4, {}, 1);
  PsSynchronizer summed;
  summed.server = {2, -1};
  PsSynchronizer sent = summed;
  sent.local_aggregation = false;
  const std::vector<Shard> shards{{.elements = 60, .synchronizer = summed}, {.elements = 40, .synchronizer = sent}};
  for (const bool reversed : {false, true}) {
    CAPTURE(reversed);
    Strategy strategy = lab_strategy(lab.model, 8, summed);
    strategy.variables[0].shards = reversed ? std::vector<Shard>(shards.rbegin(), shards.rend()) : shards;
    strategy.variables[0].partition_axis = 0;
    const Plan plan = compiled(lab, cluster, strategy);
    double to_host = 0.0;
    for (const Op* op : ops_of(plan, Phase::Copy, OpKind::Transfer))
      if (op->transfer().to.kind == End::Kind::Host) to_host += op->bytes();
    CHECK(to_host == 240.0);
    std::map<GroupingId, double> pushed;
    for (const Op* op : ops_of(plan, Phase::Push, OpKind::Transfer)) pushed[op->grouping] += op->bytes();
    CHECK(pushed == std::map<GroupingId, double>{{kEachRank, 160.0}, {kEachNode, 240.0}});
  }
}

TEST_CASE("workers update what is not on servers, and all of it where servers only sum", "[plan][compile]") {
  LabModel lab{{.bytes = 400}};
  lab.profile.update = Seconds{1.0};
  const Cluster cluster = lab_cluster(2, 1, {}, 1);
  PsSynchronizer ps;
  ps.server = {2, -1};
  Strategy strategy = lab_strategy(lab.model, 2, ps);
  strategy.variables[0].shards = {{.elements = 95, .synchronizer = ps},
                                  {.elements = 5, .synchronizer = AllReduceSynchronizer{}}};
  strategy.variables[0].partition_axis = 0;
  for (const auto& [at, share] : {std::pair{UpdateAt::Server, 0.05}, std::pair{UpdateAt::Worker, 1.0}}) {
    strategy.graph.update_at = at;
    CHECK(updated_by_workers(strategy.variables[0], strategy.graph) == share);
    double updating = 0.0;
    const Plan plan = compiled(lab, cluster, strategy);
    for (const Op* op : ops_of(plan, Phase::Update, OpKind::Compute))
      updating += std::get<Compute>(op->body).duration.value();
    CHECK_THAT(updating, WithinRel(share, 1e-12));
  }
}

TEST_CASE("scheduled queues hold whatever is sent", "[plan][compile]") {
  // Pushes of devices beside pulls of hosts: both are queued per host, for a queue never serves half an op.
  const LabModel lab{{.bytes = 400}};
  const Cluster cluster = lab_cluster(2, 4, {}, 1);
  for (const bool aggregate : {false, true}) {
    for (const bool proxy : {false, true}) {
      PsSynchronizer ps;
      ps.server = {2, -1};
      ps.local_aggregation = aggregate;
      ps.local_replication = proxy;
      Strategy strategy = lab_strategy(lab.model, 8, ps);
      strategy.graph.scheduling.credit = Bytes{1};
      const Plan plan = compiled(lab, cluster, strategy);
      for (const Op& op : plan.ops) {
        if (op.queue < 0) continue;
        const GroupingId queue = plan.queues[static_cast<std::size_t>(op.queue)].grouping;
        CHECK(static_cast<int>(op.grouping) <= static_cast<int>(queue));  // Rank < Node < Job
      }
    }
  }
}

TEST_CASE("tensors are cut into partitions of the scheduler", "[plan][compile]") {
  // 1000 B in pieces of at most 300 B: 4 pieces of 250 B.
  const LabModel lab{{.bytes = 1000}};
  const Cluster cluster = lab_cluster(2, 1, {}, 1);
  Strategy strategy = on_server(lab.model, 2, {2, -1});
  strategy.graph.scheduling.partition = Bytes{300};
  const Plan served = compiled(lab, cluster, strategy);
  const auto pushes = ops_of(served, Phase::Push, OpKind::Transfer);
  REQUIRE(pushes.size() == 4);
  for (const Op* push : pushes) CHECK(push->bytes() == 250.0);
  Strategy reduced = all_reduced(lab.model, 2);
  reduced.graph.scheduling.partition = Bytes{300};
  const Plan cut = compiled(lab, cluster, reduced);
  CHECK(ops_of(cut, Phase::Synchronize, OpKind::Collective).size() == 4);
}

TEST_CASE("compute that nothing else looks at is one op", "[plan][compile]") {
  // Three layers of which only the middle one has a gradient: forward 0-2 and backward 2-1 form one op of 1+1+1+2+2,
  // backward 0 another one of 2, and the update a third.
  const LabModel lab{
      {.forward = 1, .backward = 2}, {.bytes = 400, .forward = 1, .backward = 2}, {.forward = 1, .backward = 2}};
  const Plan plan = compiled(lab, lab_cluster(2, 1), all_reduced(lab.model, 2));
  std::vector<double> durations;
  for (const Op& op : plan.ops)
    if (const auto* work = std::get_if<Compute>(&op.body)) durations.push_back(work->duration.value());
  CHECK(durations == std::vector<double>{7.0, 2.0, 0.0});
  CHECK(plan.ops.front().compute().parts.size() == 5);
}

TEST_CASE("a plan's size does not depend on the number of workers", "[plan][compile]") {
  const LabModel lab{{.bytes = 400, .backward = 1}, {.bytes = 400, .backward = 1}};
  const auto ops = [&](int nodes) {
    return compiled(lab, lab_cluster(nodes, 1), all_reduced(lab.model, nodes)).ops.size();
  };
  CHECK(ops(2) == ops(512));
}

TEST_CASE("what cannot be planned is refused by name", "[plan][compile]") {
  const LabModel lab{{.bytes = 400}};
  const Cluster cluster = lab_cluster(2, 1);
  Strategy stale = on_server(lab.model, 2, {0, -1});
  std::get<PsSynchronizer>(stale.variables[0].shards[0].synchronizer).staleness = 3;
  CHECK_THROWS_WITH(compiled(lab, cluster, stale), ContainsSubstring("pull_at_step_start"));
  CHECK_THROWS_AS(compiled(lab, cluster, all_reduced(lab.model, 3)), PlanError);
  CHECK_THROWS_AS(compiled(lab, cluster, on_server(lab.model, 2, {7, -1})), PlanError);
}

TEST_CASE("a device multiplies sufficient factors, at its peak rate", "[plan][compile]") {
  LabModel lab{{.bytes = 400}};
  Variable matrix = lab.model.variable(0);
  matrix.shape = {10, 10};
  Model model("matrix", 1, "sample");
  Layer product = lab.model.layer(0);
  product.variables.clear();
  matrix.layer = model.add_layer(product, {});
  model.add_variable(matrix);
  lab.model = model;
  const Strategy factors = lab_strategy(lab.model, 2, SfbSynchronizer{});
  Cluster cluster = lab_cluster(2, 1);
  cluster.devices.at("GPU").peak.at("fp32") = FlopsPerSecond{20.0};
  const Plan plan = compiled(lab, cluster, factors);
  const auto rebuilt = ops_of(plan, Phase::Update, OpKind::Compute);
  REQUIRE(!rebuilt.empty());
  CHECK(std::get<Compute>(rebuilt.front()->body).duration.value() == 10.0);  // 2 x 10 x 10 operations
  cluster.devices.at("GPU").peak.clear();
  CHECK_THROWS_WITH(compiled(lab, cluster, factors), ContainsSubstring("has no peak rate for 'fp32'"));
}
