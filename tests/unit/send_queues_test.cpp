// Words that follow what their process has handed to the same connection before.
#include <algorithm>

#include "sim/engine/engine.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

constexpr double kRate = 1e6;    ///< bytes per second
constexpr double kPushed = 5e5;  ///< bytes
constexpr double kRead = 1e3;    ///< bytes
constexpr double kAsked = 0.1;   ///< s

/// Node 0 pushes to the server on node 2 from the start, and asks it for a value at 0.1 s.
/// With `gpus`, the pushes come from these in turn, else from the host's memory.
/// @return when the value has arrived.
double read_beside_pushes(Seconds send_ahead, int own = 1, int of_node_1 = 0, int gpus = 0) {
  Cluster cluster = lab_cluster(2, std::max(1, gpus), {.nic = kRate}, 1);
  for (NodeGroup& group : cluster.groups) group.cpu.send_ahead = send_ahead;
  const End server{End::Kind::Server, {2, -1}};
  Plan plan;
  plan.set_ranks({{0, 0}});
  plan.servers = {{1, -1}, {2, -1}};
  plan.server_connection = 1;
  plan.queues.emplace_back();
  Op compute;
  compute.body = Compute{.duration = Seconds{kAsked}, .parts = {}, .samples = {}};
  plan.ops.push_back(compute);
  Op push;
  push.body = Transfer{.to = server, .bytes = kPushed, .tensor = 0, .streams = 1};
  Op pull;
  pull.body = Transfer{.from = server,
                       .to = {End::Kind::Device, {}},
                       .bytes = kRead,
                       .tensor = 0,
                       .receiver_initiated = true,
                       .connection = 1,
                       .streams = 1};
  pull.queue = 0;
  pull.after = {{0, 0}};
  plan.ops.push_back(pull);
  for (int i = 0; i < own + of_node_1; ++i) {
    push.grouping = kWholeJob;
    push.transfer().from = {End::Kind::Fixed, {i < own ? 0 : 1, gpus > 0 ? i % gpus : -1}};
    plan.ops.push_back(push);
  }
  const Prediction run = replay(plan, cluster, {.fidelity = Fidelity::Fluid, .max_iterations = 1, .record = true});
  for (const Span& span : run.spans)
    if (span.op == 1) return span.end.value();
  return -1.0;
}

}  // namespace

TEST_CASE("a request waits for all that its connection has to send, up to send_ahead", "[engine][send]") {
  CHECK_THAT(read_beside_pushes(Seconds{0.0}), WithinRel(kAsked + kRead / kRate, 1e-6));
  // 0.4 s of the push are left, and 0.9 of two that take turns on the connection.
  CHECK_THAT(read_beside_pushes(Seconds{5.0}), WithinRel(kAsked + 0.4 + kRead / kRate, 1e-6));
  CHECK_THAT(read_beside_pushes(Seconds{5.0}, 2), WithinRel(kAsked + 0.9 + kRead / kRate, 1e-6));
  CHECK_THAT(read_beside_pushes(Seconds{5.0}, 2, 0, 2), WithinRel(kAsked + 0.9 + kRead / kRate, 1e-6));
  CHECK_THAT(read_beside_pushes(Seconds{0.2}), WithinRel(kAsked + 0.2 + kRead / kRate, 1e-6));
  CHECK_THAT(read_beside_pushes(Seconds{5.0}, 0), WithinRel(kAsked + kRead / kRate, 1e-6));
}

TEST_CASE("what others send costs a request its share of the port and is not before it", "[engine][send]") {
  // 0.45 MB are left at 0.1 s, at half of the rate.
  CHECK_THAT(read_beside_pushes(Seconds{5.0}, 1, 1), WithinRel(kAsked + 0.9 + kRead / kRate, 1e-6));
  CHECK_THAT(read_beside_pushes(Seconds{5.0}, 1, 2), WithinRel(kAsked + 0.9 + kRead / kRate, 1e-6));
  CHECK_THAT(read_beside_pushes(Seconds{5.0}, 0, 1), WithinRel(kAsked + kRead / kRate, 1e-6));
}

TEST_CASE("a server has not handed over what it has not been asked for", "[engine][send]") {
  // Pushes a and b fill the connection for a second, c follows when a has arrived. The read, asked for at 0.1 s behind
  // both, is no reason for word of a's arrival at 0.5 s to come late.
  Cluster cluster = lab_cluster(1, 1, {.nic = kRate}, 1);
  for (NodeGroup& group : cluster.groups) group.cpu.send_ahead = Seconds{5.0};
  const End server{End::Kind::Server, {1, -1}};
  Plan plan;
  plan.set_ranks({{0, 0}});
  plan.servers = {{1, -1}};
  plan.queues.resize(2);
  plan.queues[1].slots = 2;
  Op compute;
  compute.body = Compute{.duration = Seconds{kAsked}, .parts = {}, .samples = {}};
  Op push;
  push.body = Transfer{.from = {End::Kind::Device, {}}, .to = server, .bytes = kPushed, .tensor = 0, .streams = 1};
  Op pull;
  pull.body = Transfer{.from = server,
                       .to = {End::Kind::Device, {}},
                       .bytes = kPushed,
                       .tensor = 0,
                       .receiver_initiated = true,
                       .connection = 1,
                       .streams = 1};
  pull.queue = 0;
  pull.after = {{0, 0}};
  Op queued = push;
  queued.queue = 1;
  plan.ops = {compute, pull, queued, queued, queued};
  const Prediction run = replay(plan, cluster, {.fidelity = Fidelity::Fluid, .max_iterations = 1, .record = true});
  const auto span = [&](OpId op) {
    return *std::find_if(run.spans.begin(), run.spans.end(), [&](const Span& s) { return s.op == op; });
  };
  CHECK_THAT(span(2).end.value(), WithinRel(0.5, 1e-6));
  CHECK_THAT(span(4).start.value(), WithinRel(0.5, 1e-6));
  CHECK_THAT(span(1).end.value(), WithinRel(1.0 + kPushed / kRate, 1e-6));
}
