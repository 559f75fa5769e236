#include "sim/plan/estimated_servers.hpp"

#include <cmath>
#include <functional>
#include <numeric>
#include <set>

#include "sim/plan/plan_writer.hpp"
#include "sim/plan/reading_order.hpp"
#include "sim/plan/server_ops.hpp"

namespace simsync::detail {

double end_beside(const SharedWires& shared, double from, double length) {
  auto next =
      std::partition_point(shared.begin(), shared.end(), [&](const SharedWire& wire) { return wire.end <= from; });
  double now = from;
  double left = length;
  for (; next != shared.end(); ++next) {
    const double alone = std::max(0.0, next->begin - now);
    if (left <= alone) break;
    left -= alone;
    now = std::max(now, next->begin);
    const double done = next->share * (next->end - now);
    if (left <= done) return now + left / next->share;
    left -= done;
    now = next->end;
  }
  return now + left;
}

EstimatedServers::EstimatedServers(const EstimateContext& context, const Strategy& strategy)
    : c_(context),
      strategy_(strategy),
      graph_(strategy.graph),
      nodes_(static_cast<std::size_t>(c_.cluster.node_count())) {
  for (const int node : c_.nodes) nodes_[static_cast<std::size_t>(node)].is_worker = true;
  cut();
  if (served_.empty()) return;
  std::set<int> serving;
  for (const Served& one : served_) serving.insert(one.ps.server.node);
  servers_ = static_cast<int>(serving.size());
  std::vector<std::vector<std::size_t>> of_variable(c_.model.variables().size());
  for (std::size_t i = 0; i < served_.size(); ++i) of_variable[served_[i].variable].push_back(i);
  for (const std::size_t place : reading_order(strategy, c_.backward_order.size()))
    for (const std::size_t i : of_variable[c_.backward_order[place]]) reading_.push_back(i);
  set_once();
}

/// What no step changes.
void EstimatedServers::set_once() {
  const Served* before = nullptr;
  for (Served& one : served_) {
    if (on_gpu(one) && before != nullptr && one.bytes == before->bytes && one.pieces == before->pieces) {
      one.scatter = before->scatter;
      one.gather = before->gather;
    } else if (on_gpu(one)) {
      const auto ring = [&](CollectivePrimitive primitive, double bytes) {
        return one.pieces * c_.collective(c_.inside, primitive, CollectiveAlgorithm::Ring, bytes / one.pieces);
      };
      one.scatter = ring(CollectivePrimitive::ReduceScatter, one.bytes);
      one.gather = ring(CollectivePrimitive::AllGather, one.bytes / c_.per_node);
      before = &one;
    }
    if (graph_.scheduling.credit.count > 0) {
      one.turn_in = turn_of(one, true);
      one.turn_out = turn_of(one, false);
    }
  }
  std::vector<std::size_t> order(served_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return served_[a].how->priority < served_[b].how->priority; });
  for (std::size_t place = 0; place < order.size(); ++place) served_[order[place]].urgency = place;
}

bool EstimatedServers::scheduled() const {
  return graph_.scheduling.credit.count > 0 || graph_.scheduling.partition.count > 0;
}

bool EstimatedServers::by_priority() const {
  return graph_.scheduling.credit.count > 0 && graph_.scheduling.ordering == Ordering::Priority;
}

void EstimatedServers::cut() {
  const auto limit = static_cast<double>(graph_.scheduling.partition.count);
  const StepGradients gradients = gradients_of(c_.profile);
  for (const VariableId id : c_.backward_order) {
    const VariableStrategy& how = strategy_.variables[id];
    const Variable& variable = c_.model.variable(id);
    const std::size_t first = served_.size();
    for (const Shard& shard : how.shards) {
      const auto* ps = std::get_if<PsSynchronizer>(&shard.synchronizer);
      if (ps == nullptr) continue;
      const double bytes = wire_bytes(variable, how, shard.elements, gradients);
      const auto same = std::find_if(served_.begin() + static_cast<std::ptrdiff_t>(first), served_.end(),
                                     [&](const Served& one) { return one.ps == *ps; });
      if (same != served_.end()) {
        same->bytes += bytes;
        same->messages += 1.0;
        continue;
      }
      served_.push_back(
          {.variable = id, .how = &how, .ps = *ps, .bytes = bytes, .sparse = travels_sparse(variable, how)});
    }
    for (std::size_t i = first; i < served_.size() && scheduled(); ++i) {
      Served& one = served_[i];
      one.pieces = std::max(one.messages, limit > 0.0 ? std::ceil(one.bytes / limit) : 1.0);
      one.messages = one.pieces;
    }
  }
}

bool EstimatedServers::on_gpu(const Served& one) const {
  return graph_.aggregate_on_gpu && c_.per_node > 1 && !one.sparse;
}

int EstimatedServers::remote_nodes(const Served& one) const {
  return c_.node_count() - (nodes_[static_cast<std::size_t>(one.ps.server.node)].is_worker ? 1 : 0);
}

double EstimatedServers::host_pass(const CpuClass& cpu, double rate, double passes, double bytes,
                                   double& threads) const {
  const HostPass pass = detail::host_pass(cpu, {graph_.parallel_host_ops, BytesPerSecond{rate}, passes}, bytes);
  threads = pass.threads;
  return pass.time.value();
}

void EstimatedServers::push_all(const std::vector<double>& ready) {
  std::vector<Queued> waiting;
  for (std::size_t i = 0; i < served_.size(); ++i) {
    const Served& one = served_[i];
    const double at = ready[c_.model.variable(one.variable).layer];
    Queued next{{at, at}, i};
    if (one.ps.local_aggregation) aggregate(next.moving, one);
    call(next.moving, one, calls_);
    waiting.push_back(next);
  }
  if (by_priority() && !graph_.scheduling.pulls_only) order(waiting, true);
  for (Queued& next : waiting) {
    Served& one = served_[next.served];
    const double gathered = one.sparse && one.ps.local_aggregation ? one.bytes * c_.per_node : one.bytes;
    cross(next.moving, one, one.ps.local_aggregation ? gathered : one.bytes * c_.per_node, true);
    sum(next.moving, one);
    apply(next.moving, one);
    one.updated = next.moving;
  }
  for (Served& one : served_)
    if (is_refreshed(one)) fetch(one.updated, one);
}

void EstimatedServers::pull_all(double start, std::vector<double>& arrived) {
  std::vector<Queued> waiting;
  for (const std::size_t i : reading_) {
    const Moving& updated = served_[i].updated;
    waiting.push_back({{std::max(start, updated.first), std::max(start, updated.last)}, i});
  }
  if (!graph_.pull_at_step_start)
    std::stable_sort(waiting.begin(), waiting.end(),
                     [](const Queued& a, const Queued& b) { return a.moving.first < b.moving.first; });
  if (graph_.scheduling.ordering == Ordering::Priority) order(waiting, false);
  for (Queued& next : waiting) {
    const Served& one = served_[next.served];
    bring(next.moving, one);
    double& layer = arrived[c_.model.variable(one.variable).layer];
    layer = std::max(layer, next.moving.last);
  }
}

/// Whoever is there goes in the order of priority; who comes later, and is more urgent, goes before those that have
/// not begun.
void EstimatedServers::order(std::vector<Queued>& waiting, bool to_server) const {
  const auto is_earlier = [](const Queued& a, const Queued& b) { return a.moving.first < b.moving.first; };
  if (!std::is_sorted(waiting.begin(), waiting.end(), is_earlier))
    std::stable_sort(waiting.begin(), waiting.end(), is_earlier);
  std::vector<std::pair<std::size_t, std::size_t>> there;  // a heap: place by urgency, and in `waiting`
  std::vector<Queued> out;
  out.reserve(waiting.size());
  double now = 0.0;
  for (std::size_t next = 0; next < waiting.size() || !there.empty();) {
    if (there.empty()) now = std::max(now, waiting[next].moving.first);
    for (; next < waiting.size() && waiting[next].moving.first <= now; ++next) {
      there.emplace_back(served_[waiting[next].served].urgency, next);
      std::push_heap(there.begin(), there.end(), std::greater<>());
    }
    std::pop_heap(there.begin(), there.end(), std::greater<>());
    out.push_back(waiting[there.back().second]);
    there.pop_back();
    const Served& one = served_[out.back().served];
    now += to_server ? one.turn_in : one.turn_out;
  }
  waiting = std::move(out);
}

/// Pieces of it that a worker has on their way at a time.
double EstimatedServers::in_flight(const Served& one) const {
  return 1.0 + std::floor(static_cast<double>(graph_.scheduling.credit.count) * one.pieces / one.bytes);
}

/// How long a worker's queue is busy with it: with bytes through its own link, through those of the servers that are
/// busy at a time, which all workers share, or through its connections to them; and with the way of each piece. Of S
/// servers J messages on their way, each at any of them, keep S J / (J + S - 1) busy (a balanced closed network).
double EstimatedServers::turn_of(const Served& one, bool to_server) const {
  const double rate = c_.link_rate[static_cast<std::size_t>(one.ps.server.node)];
  const bool by_host = to_server ? one.ps.local_aggregation : one.ps.local_replication;
  const double on_the_way = in_flight(one) * std::max(1, remote_nodes(one));
  const double at_a_time = servers_ * on_the_way / (on_the_way + servers_ - 1);
  const double streams = std::min<double>(servers_, in_flight(one)) * std::max(1, graph_.streams_per_server);
  const double latency = c_.between.latency + c_.between.message + graph_.per_operation_cost.value();
  return (by_host ? 1.0 : c_.per_node) * one.bytes *
             std::max(
                 {1.0 / c_.between.rate, remote_nodes(one) / (at_a_time * rate), 1.0 / (streams * c_.between.cap)}) +
         one.pieces * latency / in_flight(one);
}

/// Hosts refresh their copies inside the step, as soon as a variable is updated.
bool EstimatedServers::is_refreshed(const Served& one) const {
  return graph_.pull_at_step_start && one.ps.local_replication;
}

void EstimatedServers::aggregate(Moving& moving, const Served& one) {
  const double piece = one.bytes / one.pieces;
  if (on_gpu(one)) {
    moving.pass(inside_, one.scatter, one.pieces);
    moving.pass(to_host_, one.bytes / c_.per_node / c_.copy.rate, one.pieces, c_.copy.latency);
    return;
  }
  const DeviceClass& device = c_.cluster.devices.at(c_.cluster.group_of(c_.nodes.front()).device);
  const double encoding = compression_time(*one.how, one.bytes, gradients_of(c_.profile), device).value();
  moving.pass(to_host_, encoding + one.bytes / std::min(c_.copy.rate, c_.copy.cap), one.pieces, c_.copy.latency);
  if (c_.per_node < 2) return;
  double threads = 1.0;
  const double once = host_pass(c_.host, c_.host.sum_rate.value(), kSumPasses, piece, threads);
  const double length = (c_.per_node - 1) * once * one.pieces;
  Moving shared = moving;
  shared.pass(sums_, length * threads / c_.host.threads, one.pieces);
  moving.pass_alone(length, one.pieces);
  moving.first = std::max(moving.first, shared.first);
  moving.last = std::max(moving.last, shared.last);
}

void EstimatedServers::call(Moving& moving, const Served& one, Resource& calls) {
  if (graph_.rpc == RpcCosts{} || remote_nodes(one) == 0) return;
  moving.pass(calls, graph_.rpc.of(one.bytes, static_cast<int>(one.messages)).value(), one.pieces);
}

/// A hop of a collective is one flow beside those that cross the server's link.
void EstimatedServers::note_shared_wire(const Resource& link, SharedWires& wires, double length, double flows) const {
  const double alone = std::min(c_.between.rate, c_.cluster.collective.channels * c_.between.cap);
  const double share = std::min(1.0, c_.between.rate / (flows + 1.0) / alone);
  if (share >= 1.0) return;
  const double begin = link.free - length;
  if (!wires.empty() && begin <= wires.back().end && share == wires.back().share) {
    wires.back().end = link.free;
  } else {
    wires.push_back({begin, link.free, share});
  }
}

std::vector<SharedWires> EstimatedServers::take_shared_wires() {
  std::vector<SharedWires> out;
  for (ServerNode& server : nodes_)
    for (SharedWires* wires : {&server.shared_in, &server.shared_out}) {
      if (wires->empty()) continue;
      out.push_back(std::move(*wires));
      wires->clear();
    }
  return out;
}

void EstimatedServers::cross(Moving& moving, const Served& one, double node_bytes, bool to_server) {
  const int remote = remote_nodes(one);
  if (remote == 0) return;
  const double senders = (to_server ? one.ps.local_aggregation : one.ps.local_replication) ? 1.0 : c_.per_node;
  const double bytes = node_bytes + senders * one.messages * c_.between.half;
  const double rate = c_.link_rate[static_cast<std::size_t>(one.ps.server.node)];
  const double setup = graph_.per_operation_cost.value();
  const double latency = c_.between.latency + c_.between.message + setup;
  ServerNode& server = node_of(one);
  Moving at_worker = moving;
  Moving at_server = moving;
  Moving stream = moving;
  const bool by_credit = graph_.scheduling.credit.count > 0 && !(to_server && graph_.scheduling.pulls_only);
  const double on_link = bytes / c_.between.rate;
  const double on_queue = by_credit ? std::max(on_link, to_server ? one.turn_in : one.turn_out) : on_link;
  Resource& worker = to_server ? sends_ : receives_;
  at_worker.pass(worker, on_queue, one.pieces, latency);
  worker.busy -= on_queue - on_link;  // the link waits with its queue
  Resource& link = to_server ? server.in : server.out;
  at_server.pass(link, remote * bytes / rate, one.pieces, latency);
  if (beside_collectives_ && server.is_worker)
    note_shared_wire(link, to_server ? server.shared_in : server.shared_out, remote * bytes / rate, remote * senders);
  const double streams = graph_.streams_per_server > 0 ? graph_.streams_per_server : senders;
  const double on_stream = bytes / (streams * c_.between.cap);
  if (graph_.streams_per_server > 0) {
    stream.pass(to_server ? server.connection_in : server.connection_out, on_stream, one.pieces, latency);
  } else {
    stream.pass_alone(on_stream, one.pieces, latency);
  }
  moving.first = std::max({at_worker.first, at_server.first, stream.first});
  moving.last = std::max({at_worker.last, at_server.last, stream.last});
  if (!to_server) server.own += bytes;
}

void EstimatedServers::work(Moving& moving, const Served& one, Resource& threads, const Works& works) {
  const bool gpu = one.ps.server.gpu >= 0;
  const double all = gpu ? 1.0 : c_.cluster.group_of(one.ps.server.node).cpu.threads;
  Moving shared = moving;
  shared.pass(threads, works.count * works.length * std::min(works.threads, all) / all, works.count * one.pieces);
  Moving chain = moving;
  const double links = works.in_turn ? works.count : 1.0;
  chain.pass_alone(links * works.length, links * one.pieces);
  moving.first = std::max(shared.first, chain.first);
  moving.last = std::max(shared.last, chain.last);
}

void EstimatedServers::sum(Moving& moving, const Served& one) {
  if (!one.ps.sync) return;
  const double senders = one.ps.local_aggregation ? c_.node_count() : static_cast<double>(c_.ranks.size());
  const double bytes = one.sparse && one.ps.local_aggregation ? one.bytes * c_.per_node : one.bytes;
  const NodeGroup& group = c_.cluster.group_of(one.ps.server.node);
  double threads = 1.0;
  double length = 0.0;
  if (one.ps.server.gpu >= 0) {
    const DeviceClass& device = c_.cluster.devices.at(group.device);
    length = one.pieces * device.launch.value() + kSumPasses * bytes / device.memory_bandwidth.value();
  } else {
    length = one.pieces * host_pass(group.cpu, group.cpu.sum_rate.value(), kSumPasses, bytes / one.pieces, threads) +
             one.messages * group.cpu.per_tensor.value();
    moving.first += group.cpu.dispatch_latency.value();
    moving.last += group.cpu.dispatch_latency.value();
  }
  work(moving, one, node_of(one).threads, {length, threads, senders, graph_.update_at == UpdateAt::Server});
}

void EstimatedServers::apply(Moving& moving, const Served& one) {
  if (graph_.update_at != UpdateAt::Server) return;
  const NodeGroup& group = c_.cluster.group_of(one.ps.server.node);
  double threads = 1.0;
  double length = 0.0;
  if (one.ps.server.gpu >= 0) {
    const DeviceClass& device = c_.cluster.devices.at(group.device);
    length = one.pieces * device.launch.value() + kUpdatePasses * one.bytes / device.memory_bandwidth.value();
  } else {
    length = one.pieces *
             host_pass(group.cpu, group.cpu.update_rate.value(), kUpdatePasses, one.bytes / one.pieces, threads);
  }
  work(moving, one, node_of(one).threads, {length, threads});
}

void EstimatedServers::bring(Moving& moving, const Served& one) {
  if (!is_refreshed(one)) fetch(moving, one);
  to_devices(moving, one);
}

/// From its server to the hosts or devices that read it.
void EstimatedServers::fetch(Moving& moving, const Served& one) {
  const bool proxy = one.ps.local_replication;
  const NodeGroup& group = c_.cluster.group_of(one.ps.server.node);
  if (one.ps.server.gpu < 0 && group.cpu.per_tensor.value() > 0.0) {
    const double receivers = proxy ? c_.node_count() : static_cast<double>(c_.ranks.size());
    work(moving, one, node_of(one).answers,
         {.length = one.messages * group.cpu.per_tensor.value(), .count = receivers});
  }
  cross(moving, one, proxy ? one.bytes : one.bytes * c_.per_node, false);
  call(moving, one, returns_);
}

void EstimatedServers::to_devices(Moving& moving, const Served& one) {
  const bool scattered = one.ps.local_replication && on_gpu(one);
  const double bytes = scattered ? one.bytes / c_.per_node : one.bytes;
  moving.pass(to_device_, bytes / std::min(c_.copy.rate, c_.copy.cap), one.pieces, c_.copy.latency);
  if (scattered) moving.pass(inside_, one.gather, one.pieces);
}

void EstimatedServers::count(StepLoads& loads) const {
  const auto most = [](Seconds& kind, double busy) { kind = std::max(kind, Seconds{busy}); };
  most(loads.copies, std::max({to_host_.busy, to_device_.busy, inside_.busy}));
  most(loads.worker_link, std::max(sends_.busy, receives_.busy));
  most(loads.host_threads, std::max(sums_.busy, calls_.busy + returns_.busy));
  for (const ServerNode& server : nodes_) {
    if (server.in.busy + server.out.busy <= 0.0) continue;
    most(loads.server_threads, server.threads.busy + server.answers.busy);
    // Its own workers send and receive through the same network, but for what it keeps itself.
    const double share = server.is_worker && receives_.busy > 0.0
                             ? 1.0 - std::min(1.0, server.own / (receives_.busy * c_.between.rate))
                             : 0.0;
    most(loads.server_link, std::max(server.in.busy + share * receives_.busy, server.out.busy + share * sends_.busy));
  }
}

}  // namespace simsync::detail
