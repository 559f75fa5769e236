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

Op work(double seconds, Phase phase = Phase::Update) {
  Op op;
  op.kind = OpKind::HostWork;
  op.scope = Scope::Job;
  op.queue = 0;
  op.from = {End::Kind::Fixed, {0, -1}};
  op.duration = Seconds{seconds};
  op.reason = {phase, -1, {}};
  return op;
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

TEST_CASE("a thread takes turns of 10 ms at works that take longer", "[engine][server]") {
  // Until the short one has had its ten turns, the long one has as many.
  const Prediction one = replayed(on_threads(1, {work(1.0), work(0.1)}));
  CHECK_THAT(end_of(one, 1), WithinRel(0.2, 1e-6));
  CHECK_THAT(end_of(one, 0), WithinRel(1.1, 1e-6));
  // Nothing waits: a turn is followed by the next one.
  const Prediction two = replayed(on_threads(2, {work(1.0), work(0.1)}));
  CHECK_THAT(end_of(two, 0), WithinRel(1.0, 1e-6));
  CHECK_THAT(end_of(two, 1), WithinRel(0.1, 1e-6));
  // Works up to a turn are done one after another.
  const Prediction brief = replayed(on_threads(1, {work(0.009), work(0.005)}));
  CHECK_THAT(end_of(brief, 0), WithinRel(0.009, 1e-6));
  CHECK_THAT(end_of(brief, 1), WithinRel(0.014, 1e-6));
}

TEST_CASE("a turn is at least a hundredth of what is left", "[engine][server]") {
  const Prediction run = replayed(on_threads(1, {work(1e3), work(0.005)}));
  CHECK_THAT(end_of(run, 0), WithinRel(1e3, 1e-4));
  CHECK_THAT(end_of(run, 1), WithinRel(10.005, 1e-6));
}

TEST_CASE("what took turns with others was under way all the time", "[engine][server][explain]") {
  const Plan plan = on_threads(1, {work(1.0), work(0.1)});
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
  const Prediction run = replayed(on_threads(1, {work(0.006), work(0.006), work(0.006), work(0.001, Phase::Serve)}));
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
