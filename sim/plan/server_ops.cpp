#include "sim/plan/server_ops.hpp"

#include <algorithm>
#include <utility>

namespace simsync::detail {

Op ServerOps::transfer(const ServerPiece& piece, Phase phase, GroupingId grouping, Transfer body) const {
  // HTTP/2 cuts messages into frames of 16 KiB, unless the receiver asks for longer ones.
  constexpr double kFrame = 16384.0;
  const GraphStrategy& graph = w_.strategy.graph;
  const bool even = graph.win_bytes && graph.win_bytes->count == 0;
  const auto turn = [&](const std::optional<Bytes>& window) {
    return even ? kFrame : window ? std::max(kFrame, static_cast<double>(window->count)) : kWhole;
  };
  body.messages = piece.messages;
  body.setup = graph.per_operation_cost;
  body.tensor = piece.tensor;
  body.streams = graph.streams_per_server;
  body.first_turn = turn(graph.win_bytes);
  body.later_turn = turn(graph.win_next);
  Op op;
  op.grouping = grouping;
  op.priority = piece.priority;
  op.body = body;
  op.reason = {phase, piece.layer, piece.label};
  return op;
}

Op ServerOps::push(const ServerPiece& piece, GroupingId grouping, End from, double bytes) const {
  Op op =
      transfer(piece, Phase::Push, grouping, {.from = from, .to = {End::Kind::Server, piece.server}, .bytes = bytes});
  op.queue = w_.push;
  return op;
}

Op ServerOps::pull(const ServerPiece& piece, GroupingId grouping, End to) const {
  // What a server process sends to another node does not wait for what the worker process beside it pushes there.
  Op op = transfer(piece, Phase::Pull, grouping,
                   {.from = {End::Kind::Server, piece.server},
                    .to = to,
                    .bytes = piece.bytes,
                    .connection = w_.plan.server_connection});
  op.queue = w_.pull;
  op.transfer().receiver_initiated = op.queue >= 0;  // a queue belongs to the worker
  return op;
}

QueueId ServerOps::queue_of(const Place& server) {
  const auto [found, is_new] = w_.server_queue.try_emplace(server, w_.host);
  const std::vector<int>& with_ranks = w_.plan.nodes;
  // The hosts' queues have the threads of the weakest; a server on another has a queue of its own.
  const bool on_shared_host = server.gpu < 0 && std::binary_search(with_ranks.begin(), with_ranks.end(), server.node) &&
                              cpu(server).threads == w_.slowest_host().threads;
  if (is_new && !on_shared_host) {
    const int threads = server.gpu < 0 ? cpu(server).threads : 1;
    found->second =
        w_.add_queue({.name = name_of(server) + " server", .grouping = kWholeJob, .slots = std::max(1, threads)});
  }
  return found->second;
}

Op ServerOps::host_work(const ServerPiece& piece, GroupingId grouping, HostWork body) {
  body.at = {End::Kind::Server, piece.server};
  body.tensor = piece.tensor;
  Op op;
  op.grouping = grouping;
  op.queue = queue_of(piece.server);
  op.priority = piece.priority;
  op.reason = {phase_of(body.action), piece.layer, piece.label};
  op.body = body;
  return op;
}

PlanWriter::HostPass ServerOps::through(const ServerPiece& piece, BytesPerSecond per_thread, double passes,
                                        double bytes) const {
  if (piece.server.gpu < 0) return w_.host_pass(cpu(piece.server), per_thread, passes, bytes);
  const DeviceClass& device = w_.cluster.devices.at(w_.cluster.group_of(piece.server.node).device);
  return {device.launch + Seconds{passes * bytes / device.memory_bandwidth.value()}};
}

Seconds ServerOps::per_tensor(const ServerPiece& piece) const {
  return piece.server.gpu < 0 ? piece.messages * cpu(piece.server).per_tensor : Seconds{0.0};
}

After ServerOps::dispatched(const ServerPiece& piece, GroupingId grouping, After arrived) {
  const Seconds latency = piece.server.gpu < 0 ? cpu(piece.server).dispatch_latency : Seconds{0.0};
  if (latency.value() <= 0.0) return arrived;
  Op op = host_work(piece, grouping, {.action = HostAction::Dispatch, .duration = latency});
  op.queue = -1;
  op.after = {arrived};
  return {w_.add(std::move(op)), 0};
}

After ServerOps::sum(const ServerPiece& piece, GroupingId grouping, double bytes, After received) {
  const PlanWriter::HostPass adding = through(piece, cpu(piece.server).sum_rate, kSumPasses, bytes);
  HostWork body{.action = HostAction::Sum,
                .duration = adding.time + per_tensor(piece),
                .threads = adding.threads,
                .bytes = bytes};
  if (w_.plan.progress.backups > 0) body.late = per_tensor(piece);
  // TensorFlow's accumulator holds a lock, ps-lite leaves a key to one thread. Servers that only sum get short
  // pieces.
  body.one_at_a_time = w_.strategy.graph.update_at == UpdateAt::Server;
  return work(piece, grouping, body, {received});
}

After ServerOps::work(const ServerPiece& piece, GroupingId grouping, const HostWork& body, std::vector<After> after) {
  Op op = host_work(piece, grouping, body);
  op.after = std::move(after);
  return {w_.add(std::move(op)), 0};
}

}  // namespace simsync::detail
