// How the threads of a server take turns at what waits for them.
#include <algorithm>

#include "sim/engine/critical_path.hpp"
#include "sim/engine/engine.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab.hpp"
#include "tests/support/lab_run.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

Op work(double seconds, HostAction action = HostAction::Apply) {
  Op op;
  op.grouping = kWholeJob;
  op.queue = 0;
  op.body = HostWork{.action = action, .at = {End::Kind::Server, {0, -1}}, .duration = Seconds{seconds}};
  return op;
}

/// Somebody else's, after which a read comes.
Op at_first(double seconds) {
  Op op = work(seconds, HostAction::Wait);
  op.queue = -1;
  return op;
}

Op read_after(OpId op, double seconds) {
  Op out = work(seconds, HostAction::Serve);
  out.after = {{op, 0}};
  return out;
}

Plan on_threads(int threads, std::vector<Op> ops) {
  Plan plan;
  plan.set_ranks({{0, 0}});
  plan.servers = {{0, -1}};
  plan.queues.emplace_back();
  plan.queues.front().slots = threads;
  plan.ops = std::move(ops);
  return plan;
}

Prediction replayed(const Plan& plan) {
  return replay(plan, lab_cluster(1, 1), {.max_iterations = 1, .record = true});
}

double end_of(const Prediction& run, OpId op) {
  const auto of_op = [&](const Span& span) { return span.op == op; };
  return std::find_if(run.spans.begin(), run.spans.end(), of_op)->end.value();
}

}  // namespace

TEST_CASE("a thread ends what it has begun before it takes up the next", "[engine][server]") {
  const Prediction one = replayed(on_threads(1, {work(1.0), work(0.1)}));
  CHECK_THAT(end_of(one, 0), WithinRel(1.0, 1e-6));
  CHECK_THAT(end_of(one, 1), WithinRel(1.1, 1e-6));
  const Prediction two = replayed(on_threads(2, {work(1.0), work(0.1)}));
  CHECK_THAT(end_of(two, 0), WithinRel(1.0, 1e-6));
  CHECK_THAT(end_of(two, 1), WithinRel(0.1, 1e-6));
}

TEST_CASE("a read waits for a thread for 10 ms at most", "[engine][server]") {
  // It arrives at 1 ms, when the thread has begun the first of two updates.
  const auto read_at_1_ms = [](double update) {
    return replayed(on_threads(1, {work(update), work(update), at_first(0.001), read_after(2, 0.001)}));
  };
  const Prediction brief = read_at_1_ms(0.009);
  CHECK_THAT(end_of(brief, 3), WithinRel(0.010, 1e-6));
  CHECK_THAT(end_of(brief, 1), WithinRel(0.019, 1e-6));
  const Prediction two = read_at_1_ms(0.1);
  CHECK_THAT(end_of(two, 3), WithinRel(0.011, 1e-6));
  CHECK_THAT(end_of(two, 0), WithinRel(0.101, 1e-6));
  CHECK_THAT(end_of(two, 1), WithinRel(0.201, 1e-6));
  // A little more than a turn is no other order.
  for (const OpId op : {0, 1, 3})
    CHECK_THAT(end_of(read_at_1_ms(10.005e-3), op), WithinRel(end_of(read_at_1_ms(9.995e-3), op), 0.2));
}

TEST_CASE("a turn is at least a hundredth of what is left", "[engine][server]") {
  const Prediction run = replayed(on_threads(1, {work(1e3), read_after(2, 0.005), at_first(0.001)}));
  CHECK_THAT(end_of(run, 0), WithinRel(1e3, 1e-4));
  CHECK_THAT(end_of(run, 1), WithinRel(10.005, 1e-6));
}

TEST_CASE("what made way for a read was under way all the time", "[engine][server][explain]") {
  const Plan plan = on_threads(1, {work(1.0), read_after(2, 0.1), at_first(0.001)});
  const Prediction run = replayed(plan);
  const auto path = critical_path(plan, lab_cluster(1, 1), run);
  double told = 0.0;
  for (const PathPiece& piece : path) {
    CHECK(piece.resource == "server CPU");
    told += piece.length.value();
  }
  CHECK_THAT(told, WithinRel(1.1, 1e-6));
}

TEST_CASE("reads go before updates that wait", "[engine][server]") {
  const Prediction run =
      replayed(on_threads(1, {work(0.006), work(0.006), work(0.006), work(0.001, HostAction::Serve)}));
  CHECK_THAT(end_of(run, 3), WithinRel(0.001, 1e-6));
  CHECK_THAT(end_of(run, 2), WithinRel(0.019, 1e-6));
}

TEST_CASE("asynchronous workers do not wait for each other's updates to read", "[engine][server][async]") {
  // 100 MB: 0.1 s to push and to read alone, 0.2 s to update on one thread. Eight workers need 1.6 s of the thread and,
  // where nobody waits for all the others, little else; in a convoy 0.8 s of the wire twice besides.
  const LabModel lab{{.bytes = 1e8, .forward = 0.05, .backward = 0.05}};
  const auto step = [&](Seconds per_tensor) {
    Cluster cluster = lab_cluster(8, 1, {.nic = 1e9}, 1);
    CpuClass& cpu = cluster.groups.back().cpu;
    cpu.threads = 1;
    cpu.per_tensor = per_tensor;
    cpu.update_rate = BytesPerSecond{5e8};
    Strategy strategy = on_server(lab.model, 8, {8, -1});
    strategy.graph.pull_at_step_start = true;
    for (VariableStrategy& entry : strategy.variables)
      std::get<PsSynchronizer>(entry.shards.front().synchronizer).sync = false;
    return run(lab, cluster, strategy).step.value();
  };
  CHECK_THAT(step(Seconds{0.0}), WithinRel(1.6, 0.05));
  CHECK_THAT(step(Seconds{1e-9}), WithinRel(1.6, 0.05));
}
