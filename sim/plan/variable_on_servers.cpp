#include "sim/plan/variable_on_servers.hpp"

#include <algorithm>
#include <utility>

#include "sim/plan/compile.hpp"

namespace simsync::detail {

VariableOnServers::VariableOnServers(PlanWriter& writer, VariableId id)
    : w_(writer),
      servers_(writer),
      id_(id),
      variable_(writer.model.variable(id)),
      how_(writer.strategy.variables[id]) {}

void VariableOnServers::write_push() {
  cut();
  if (pieces_.empty()) return;
  if (stays_on_gpus()) return;
  const double aggregated = aggregated_bytes();
  OpId whole = -1;
  if (aggregated > 0.0 && !scheduled()) whole = aggregate(aggregated, label(0));
  for (const Piece& piece : pieces_) {
    summed_.push_back(push(piece, whole));
    updates_.push_back(update(piece, summed_.back()));
  }
}

void VariableOnServers::write_refresh() {
  if (stays_on_gpus()) return;
  for (std::size_t i = 0; i < pieces_.size(); ++i)
    if (pieces_[i].how.local_replication) refreshed_.push_back({pull(pieces_[i], updates_[i]), 0});
}

void VariableOnServers::write_pull(OpId start) {
  if (stays_on_gpus()) {
    for (const Piece& piece : pieces_) finish(reduce_on_gpus(piece));
    return;
  }
  std::vector<OpId> arrived;  // on hosts, whose devices get all of it in one copy
  double bytes = 0.0;
  if (!refreshed_.empty()) arrived.push_back(start);
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    const bool on_host = piece.how.local_replication;
    if (on_host) bytes += piece.bytes;
    if (on_host && !refreshed_.empty()) continue;
    const After fresh = start >= 0 ? After{start, 0} : updates_[i];
    const OpId pulled = pull(piece, fresh);
    if (on_host && scheduled()) {
      finish(copy_to_device(piece.bytes, {pulled}, label(piece.number)));
    } else if (on_host) {
      arrived.push_back(pulled);
    } else {
      finish(pulled);
    }
  }
  if (!arrived.empty()) finish(copy_to_device(bytes, arrived, label(0)));
}

bool VariableOnServers::scheduled() const {
  return w_.push >= 0 || w_.pull >= 0 || w_.strategy.graph.scheduling.partition.count > 0;
}

double VariableOnServers::aggregated_bytes() const {
  double sum = 0.0;
  for (const Piece& piece : pieces_)
    if (piece.how.local_aggregation) sum += piece.bytes;
  return sum;
}

int VariableOnServers::ranks_per_node() const {
  int most = 0;
  for (std::size_t i = 0; i + 1 < w_.plan.node_begin.size(); ++i)
    most = std::max(most, w_.plan.node_begin[i + 1] - w_.plan.node_begin[i]);
  return most;
}

bool VariableOnServers::on_gpu() const {
  return w_.strategy.graph.aggregate_on_gpu && ranks_per_node() > 1 && !travels_sparse(variable_, how_);
}

bool VariableOnServers::stays_on_gpus() const {
  return w_.strategy.graph.aggregate_on_gpu && !travels_sparse(variable_, how_) && w_.plan.nodes.size() == 1 &&
         w_.strategy.graph.update_at == UpdateAt::Worker;
}

void VariableOnServers::cut() {
  const auto limit = static_cast<double>(w_.strategy.graph.scheduling.partition.count);
  for (const Shard& shard : how_.shards) {
    const auto* ps = std::get_if<PsSynchronizer>(&shard.synchronizer);
    if (ps == nullptr) continue;
    const double bytes = wire_bytes(variable_, how_, shard.elements, w_.gradients());
    const auto same =
        std::find_if(pieces_.begin(), pieces_.end(), [&](const Piece& piece) { return piece.how == *ps; });
    if (!scheduled() && same != pieces_.end()) {
      same->bytes += bytes;
      ++same->messages;
      continue;
    }
    const int parts = pieces_of(bytes, limit);
    for (int part = 0; part < parts; ++part)
      pieces_.push_back({*ps, bytes / parts, 1, pieces_.size(), w_.plan.tensors++});
  }
}

Op VariableOnServers::copy(End from, End to, double bytes, const std::string& text) const {
  Op op;
  op.grouping = kEachRank;
  op.queue = to.kind == End::Kind::Host ? w_.to_host : w_.to_device;
  op.body = Transfer{.from = from, .to = to, .bytes = bytes};
  op.priority = how_.priority;
  op.reason = {Phase::Copy, layer(), text};
  return op;
}

ServerPiece VariableOnServers::at_server(const Piece& piece) const {
  return {.server = piece.how.server,
          .bytes = piece.bytes,
          .messages = piece.messages,
          .tensor = piece.tensor,
          .priority = how_.priority,
          .layer = layer(),
          .label = label(piece.number)};
}

OpId VariableOnServers::gradient_ready() const {
  return w_.gradient_ready(variable_.layer, w_.strategy.graph.servers_overlap.in_node);
}

OpId VariableOnServers::remote_call(GroupingId grouping, const Piece& piece, double bytes, std::vector<After> after) {
  if (w_.rpc < 0) w_.rpc = w_.add_queue({.name = "rpc", .grouping = kEachNode});
  Op op;
  op.grouping = grouping;
  op.queue = w_.rpc;
  op.body = HostWork{.action = HostAction::RemoteCall,
                     .at = {End::Kind::Host, {}},
                     .duration = w_.strategy.graph.rpc.of(bytes, piece.messages)};
  op.priority = how_.priority;
  op.after = std::move(after);
  op.reason = {Phase::RemoteCall, layer(), label(piece.number)};
  return w_.add(std::move(op));
}

bool VariableOnServers::crosses_network(const Piece& piece) const {
  return w_.plan.nodes.size() > 1 || piece.how.server.node != w_.plan.nodes.front();
}

bool VariableOnServers::calls_cost(const Piece& piece) const {
  return crosses_network(piece) && w_.strategy.graph.rpc != RpcCosts{};
}

OpId VariableOnServers::inside_host(CollectivePrimitive primitive, double bytes, OpId after, const std::string& text) {
  Op op;
  op.grouping = kEachNode;
  op.queue = w_.inside_node;
  op.body = Collective{.primitive = primitive,
                       .algorithm = CollectiveAlgorithm::Ring,
                       .protocol = {},
                       .bytes = bytes,
                       .setup = collective_setup(w_.cluster.collective, bytes)};
  op.priority = how_.priority;
  op.after = {{after, 0}};
  op.reason = {Phase::Aggregate, layer(), text};
  return w_.add(std::move(op));
}

OpId VariableOnServers::reduce_on_gpus(const Piece& piece) {
  if (ranks_per_node() < 2) return gradient_ready();
  const OpId scattered =
      inside_host(CollectivePrimitive::ReduceScatter, piece.bytes, gradient_ready(), label(piece.number));
  return inside_host(CollectivePrimitive::AllGather, piece.bytes / ranks_per_node(), scattered, label(piece.number));
}

OpId VariableOnServers::aggregate(double bytes, const std::string& text) {
  if (on_gpu()) {
    // Every GPU sums its part of the bytes and copies that part to the host.
    const OpId scattered = inside_host(CollectivePrimitive::ReduceScatter, bytes, gradient_ready(), text);
    Op part = copy({End::Kind::Device, {}}, {End::Kind::Host, {}}, bytes / ranks_per_node(), text);
    part.after = {{scattered, 0}};
    return w_.add(std::move(part));
  }
  Op whole = copy({End::Kind::Device, {}}, {End::Kind::Host, {}}, bytes, text);
  whole.transfer().setup = whole.transfer().packing = compression_time(how_, bytes, w_.gradients(), w_.device());
  whole.after = {{gradient_ready(), 0}};
  const OpId copied = w_.add(std::move(whole));
  const int ranks = ranks_per_node();
  if (ranks < 2) return copied;
  Op sum;
  sum.grouping = kEachNode;
  sum.queue = w_.host;
  const CpuClass host = w_.slowest_host();
  const PlanWriter::HostPass once = w_.host_pass(host, host.sum_rate, kSumPasses, bytes);
  sum.body = HostWork{.action = HostAction::Sum,
                      .at = {End::Kind::Host, {}},
                      .duration = (ranks - 1) * once.time,
                      .threads = once.threads};
  sum.after = {{copied, 0}};
  sum.reason = {Phase::Aggregate, layer(), text};
  return w_.add(std::move(sum));
}

OpId VariableOnServers::copy_to_device(double bytes, const std::vector<OpId>& after, const std::string& text) {
  const int parts = on_gpu() ? ranks_per_node() : 1;
  Op op = copy({End::Kind::Host, {}}, {End::Kind::Device, {}}, bytes / parts, text);
  for (const OpId id : after) op.after.push_back({id, 0});
  const OpId copied = w_.add(std::move(op));
  // The payload of an all-gather is what one rank contributes.
  return parts > 1 ? inside_host(CollectivePrimitive::AllGather, bytes / parts, copied, text) : copied;
}

After VariableOnServers::push(const Piece& piece, OpId whole) {
  const bool aggregated = piece.how.local_aggregation;
  const double gathered = travels_sparse(variable_, how_) && aggregated ? piece.bytes * ranks_per_node() : piece.bytes;
  const GroupingId grouping = aggregated ? kEachNode : kEachRank;
  OpId ready = whole;
  if (aggregated && whole < 0) ready = aggregate(piece.bytes, label(piece.number));
  if (!aggregated) ready = gradient_ready();
  const ServerPiece to_server = at_server(piece);
  Op op = servers_.push(to_server, grouping, {aggregated ? End::Kind::Host : End::Kind::Device, {}}, gathered);
  if (!aggregated) op.transfer().packing = compression_time(how_, piece.bytes, w_.gradients(), w_.device());
  op.transfer().setup += op.transfer().packing;
  op.after = {{ready, 0}};
  const double beside = w_.strategy.graph.servers_overlap.between_nodes;
  if (crosses_network(piece) && beside < 1.0) op.after.push_back({w_.gradient_ready(variable_.layer, beside), 0});
  if (calls_cost(piece)) op.after = {{remote_call(grouping, piece, gathered, std::move(op.after)), 0}};
  const After sent = servers_.dispatched(to_server, grouping, {w_.add(std::move(op)), 0});
  return piece.how.sync ? servers_.sum(to_server, grouping, gathered, sent) : sent;
}

After VariableOnServers::update(const Piece& piece, After summed) {
  const bool here = w_.strategy.graph.update_at == UpdateAt::Server;
  const ServerPiece at = at_server(piece);
  PlanWriter::HostPass applying;
  if (here) applying = servers_.through(at, servers_.cpu(at.server).update_rate, kUpdatePasses, piece.bytes);
  if (!piece.how.sync) applying.time += servers_.per_tensor(at);
  const HostWork body{.action = HostAction::Apply,
                      .duration = applying.time,
                      .threads = applying.threads,
                      .bytes = here ? piece.bytes : 0.0};
  const GroupingId grouping = piece.how.sync ? kWholeJob : piece.how.local_aggregation ? kEachNode : kEachRank;
  After applied = servers_.work(at, grouping, body, {{summed.op, summed.lag, w_.plan.progress.backups}});
  applied.lag = piece.how.staleness;
  return applied;
}

OpId VariableOnServers::pull(const Piece& piece, After fresh) {
  const bool proxy = piece.how.local_replication;
  const GroupingId grouping = proxy ? kEachNode : kEachRank;
  const ServerPiece from_server = at_server(piece);
  Op op = servers_.pull(from_server, grouping, {proxy ? End::Kind::Host : End::Kind::Device, {}});
  // Where the receiver asks for it, the server's thread is woken by the request (ControlMessages::request).
  if (!op.transfer().asks_host()) fresh = servers_.dispatched(from_server, grouping, fresh);
  const Seconds serving = servers_.per_tensor(from_server);
  if (serving.value() > 0.0)
    fresh = servers_.work(from_server, grouping, {.action = HostAction::Serve, .duration = serving}, {fresh});
  op.after = {fresh};
  const OpId arrived = w_.add(std::move(op));
  return calls_cost(piece) ? remote_call(grouping, piece, piece.bytes, {{arrived, 0}}) : arrived;
}

void VariableOnServers::finish(OpId arrived) {
  if (w_.strategy.graph.update_at == UpdateAt::Worker) {
    w_.to_update.emplace_back(id_, arrived);
  } else {
    w_.gates[variable_.layer].push_back(arrived);
  }
}

}  // namespace simsync::detail
