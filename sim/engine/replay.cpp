#include "sim/engine/replay.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"

namespace simsync {

Prediction replay(const Plan& plan, const Cluster& cluster, const ReplayOptions& options) {
  return detail::Replay(plan, cluster, options).run();
}

namespace detail {
namespace {

/// Nodes whose links are needed: those simulated and those that host servers.
std::vector<int> nodes_needed(const Plan& plan, const Folding& folding) {
  std::set<int> nodes;
  for (const int cell : folding.cells) nodes.insert(plan.nodes[static_cast<std::size_t>(cell)]);
  for (const Place& server : plan.servers) nodes.insert(server.node);
  return {nodes.begin(), nodes.end()};
}

}  // namespace

Replay::Replay(const Plan& plan, const Cluster& cluster, const ReplayOptions& options)
    : plan_(plan),
      cluster_(cluster),
      options_(options),
      folding_(choose_folding(plan, cluster, options.fidelity)),
      topology_(cluster, nodes_needed(plan, folding_)),
      network_(FlowNetwork::instance()) {
  std::vector<BytesPerSecond> bandwidths;
  for (const Link& link : topology_.links()) {
    bandwidths.push_back(link.bandwidth);
    link_rate_.push_back(link.bandwidth.value());
    link_name_.push_back(link.name);
  }
  network_.begin(bandwidths);
  index_cells();
  index_ops();
}

void Replay::index_cells() {
  for (const int cell : folding_.cells) {
    const auto [begin, end] = plan_.cell_ranks(Scope::Node, cell);
    node_begin_.push_back(static_cast<int>(ranks_.size()));
    for (int rank = begin; rank < end; ++rank) {
      node_of_.push_back(static_cast<int>(node_begin_.size()) - 1);
      ranks_.push_back(rank);
    }
  }
  node_begin_.push_back(static_cast<int>(ranks_.size()));
  devices_.resize(ranks_.size());
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    devices_[r].slowdown = cluster_.group_of(plan_.ranks[static_cast<std::size_t>(ranks_[r])].node).compute_slowdown;
  queues_.resize(plan_.queues.size());
  for (std::size_t q = 0; q < plan_.queues.size(); ++q)
    queues_[q].resize(static_cast<std::size_t>(cells(plan_.queues[q].scope)));
}

int Replay::cells(Scope scope) const {
  switch (scope) {
    case Scope::Rank:
      return static_cast<int>(ranks_.size());
    case Scope::Node:
      return static_cast<int>(node_begin_.size()) - 1;
    case Scope::Job:
      return 1;
  }
  return 0;
}

std::pair<int, int> Replay::related(Scope from, int cell, Scope to) const {
  if (from == to) return {cell, cell + 1};
  if (from == Scope::Job) return {0, cells(to)};
  if (to == Scope::Job) return {0, 1};
  const auto i = static_cast<std::size_t>(cell);
  if (from == Scope::Rank) return {node_of_[i], node_of_[i] + 1};
  return {node_begin_[i], node_begin_[i + 1]};
}

void Replay::index_ops() {
  releases_.resize(plan_.ops.size());
  for (std::size_t op = 0; op < plan_.ops.size(); ++op) {
    first_.push_back(instances_);
    instances_ += static_cast<std::size_t>(cells(plan_.ops[op].scope));
    for (const After& after : plan_.ops[op].after)
      releases_[static_cast<std::size_t>(after.op)].push_back({static_cast<OpId>(op), after.lag});
  }
  waits_now_.assign(instances_, 0);
  waits_before_.assign(instances_, 0);
  for (std::size_t id = 0; id < plan_.ops.size(); ++id) {
    const Op& op = plan_.ops[id];
    for (int cell = 0; cell < cells(op.scope); ++cell) {
      for (const After& after : op.after) {
        const auto [begin, end] = related(op.scope, cell, plan_.ops[static_cast<std::size_t>(after.op)].scope);
        auto& waits = after.lag == 0 ? waits_now_ : waits_before_;
        waits[number(static_cast<OpId>(id), cell)] += end - begin;
      }
    }
  }
  ways_.resize(instances_);
}

Replay::Iteration& Replay::iteration(int k) {
  while (static_cast<int>(iterations_.size()) <= k) {
    auto next = std::make_unique<Iteration>();
    next->left = static_cast<std::int64_t>(instances_);
    next->pending = waits_now_;
    if (!iterations_.empty())
      for (std::size_t i = 0; i < instances_; ++i) next->pending[i] += waits_before_[i];
    iterations_.push_back(std::move(next));
  }
  return *iterations_[static_cast<std::size_t>(k)];
}

void Replay::release_roots() {
  for (std::size_t id = 0; id < plan_.ops.size(); ++id)
    for (int cell = 0; cell < cells(plan_.ops[id].scope); ++cell)
      if (waits_now_[number(static_cast<OpId>(id), cell)] == 0)
        ready_.push_back({{static_cast<OpId>(id), cell, 0}, -1});
}

void Replay::complete(const Instance& instance) {
  const std::int32_t span = note_end(instance);
  leave_queue(instance);
  const Op& op = op_of(instance);
  for (const After& next : releases_[static_cast<std::size_t>(instance.op)]) {
    const int k = instance.iteration + next.lag;
    if (k >= options_.max_iterations) continue;
    Iteration& target = iteration(k);
    const auto [begin, end] = related(op.scope, instance.cell, plan_.ops[static_cast<std::size_t>(next.op)].scope);
    for (int cell = begin; cell < end; ++cell)
      if (--target.pending[number(next.op, cell)] == 0) ready_.push_back({{next.op, cell, k}, span});
  }
  if (--iteration(instance.iteration).left == 0) finish_iteration(instance.iteration);
}

void Replay::finish_iteration(int k) {
  // Iterations end in order: every op of k + 1 has a way back to one of k.
  iteration_end_.push_back(network_.now());
  iterations_[static_cast<std::size_t>(k)]->pending = {};
  if (k + 1 >= options_.max_iterations) stopped_ = true;
  if (k < 1) return;
  const auto step = [&](int i) {
    return iteration_end_[static_cast<std::size_t>(i)].value() -
           (i > 0 ? iteration_end_[static_cast<std::size_t>(i) - 1].value() : 0.0);
  };
  const double change = std::abs(step(k) - step(k - 1));
  if (change <= options_.convergence * std::max(step(k), 1e-12)) {
    steady_ = true;
    stopped_ = true;
  }
}

void Replay::drain() {
  if (draining_) return;
  draining_ = true;
  while (!ready_.empty() || !to_serve_.empty()) {
    if (ready_.empty()) {
      const ToServe next = to_serve_.front();
      to_serve_.pop_front();
      if (!stopped_) serve(next.queue, *next.state, next.cause);
      continue;
    }
    const auto [instance, cause] = ready_.front();
    ready_.pop_front();
    if (!stopped_) become_ready(instance, cause);
  }
  draining_ = false;
}

FlowNetwork::Token Replay::token(Pending pending) {
  if (free_pendings_.empty()) {
    free_pendings_.push_back(static_cast<std::uint32_t>(pendings_.size()));
    pendings_.emplace_back();
  }
  const std::uint32_t slot = free_pendings_.back();
  free_pendings_.pop_back();
  pendings_[slot] = pending;
  return slot;
}

void Replay::handle(FlowNetwork::Token token) {
  const Pending p = pendings_[token];
  free_pendings_.push_back(static_cast<std::uint32_t>(token));
  if (p.flow >= 0) flows_[static_cast<std::size_t>(p.flow)].end = network_.now();
  switch (p.event) {
    case Event::ComputeEnds: {
      Device& device = devices_[static_cast<std::size_t>(p.instance.cell)];
      if (device.epoch != p.epoch) break;
      device.running.reset();
      complete(p.instance);
      break;
    }
    case Event::WorkEnds:
      complete(p.instance);
      break;
    case Event::FlowEnds:
      leave_connection(p.instance);
      complete(p.instance);
      break;
    case Event::SetupEnds:
      enter_connection(p.instance);
      break;
    case Event::CollectiveSetupEnds:
      open_collective(p.run);
      break;
    case Event::HopStarts:
      start_hop(p.run, p.hop);
      break;
    case Event::MessageSent:
      message_sent(p.run, p.hop);
      break;
    case Event::MessageArrives:
      message_arrived(p.run, p.hop);
      break;
    case Event::Idle:
      break;
  }
  drain();
}

Prediction Replay::run() {
  iteration(0);
  release_roots();
  drain();
  network_.run([this](FlowNetwork::Token token) { handle(token); });
  return result();
}

Prediction Replay::result() {
  Prediction out;
  SIMSYNC_ASSERT(!iteration_end_.empty());
  double before = 0.0;
  for (const Seconds end : iteration_end_) {
    out.steps.emplace_back(end.value() - before);
    before = end.value();
  }
  // Without convergence the mean of the later half is the best estimate of a step that keeps changing.
  const std::size_t half = steady_ ? out.steps.size() - 1 : out.steps.size() / 2;
  double sum = 0.0;
  for (std::size_t i = half; i < out.steps.size(); ++i) sum += out.steps[i].value();
  out.step = Seconds{sum / static_cast<double>(out.steps.size() - half)};
  out.steady = steady_;
  double compute = 0.0;
  for (const Op& op : plan_.ops)
    if (op.kind == OpKind::Compute) compute += op.duration.value();
  double slowest = 0.0;
  for (const Device& device : devices_) slowest = std::max(slowest, device.slowdown);
  out.compute = Seconds{compute * slowest};
  out.fidelity = folding_.fidelity;
  out.simulated_ranks = static_cast<int>(ranks_.size());
  out.flows = network_.flows_started();
  if (!options_.record) return out;
  record_into(out);
  return out;
}

void Replay::record_into(Prediction& out) {
  out.spans = std::move(spans_);
  for (const int rank : ranks_) out.ranks.push_back(plan_.ranks[static_cast<std::size_t>(rank)]);
  for (const int cell : folding_.cells) out.nodes.push_back(plan_.nodes[static_cast<std::size_t>(cell)]);
  out.stands_for = folding_.stands_for;
  out.iteration_end = iteration_end_;
  for (std::size_t id = 0; id < link_rate_.size(); ++id)
    out.traffic.links.push_back({link_name_[id], BytesPerSecond{link_rate_[id]}});
  out.traffic.paths = flow_paths_;
  out.traffic.flows = std::move(flows_);
  std::vector<double> bytes(link_rate_.size(), 0.0);
  for (const FlowSpan& flow : out.traffic.flows)
    for (const int link : flow_paths_[static_cast<std::size_t>(flow.path)].links)
      bytes[static_cast<std::size_t>(link)] += flow.bytes;
  const double elapsed = std::max(network_.now().value(), 1e-12);
  for (std::size_t id = 0; id < bytes.size(); ++id)
    if (bytes[id] > 0.0) out.links.push_back({link_name_[id], bytes[id], bytes[id] / link_rate_[id] / elapsed});
  std::stable_sort(out.links.begin(), out.links.end(),
                   [](const LinkUse& a, const LinkUse& b) { return a.utilization > b.utilization; });
}

void Replay::note_ready(const Instance& instance, std::int32_t cause) {
  if (options_.record)
    noted_[{number(instance.op, instance.cell), instance.iteration}] = {network_.now().value(), 0.0, cause};
}

void Replay::note_start(const Instance& instance, std::int32_t cause) {
  if (!options_.record) return;
  Noted& noted = noted_[{number(instance.op, instance.cell), instance.iteration}];
  noted.start = network_.now().value();
  if (noted.start > noted.ready && cause >= 0) noted.cause = cause;  // it waited for a resource last
}

std::int32_t Replay::note_end(const Instance& instance) {
  if (!options_.record) return -1;
  const auto found = noted_.find({number(instance.op, instance.cell), instance.iteration});
  SIMSYNC_ASSERT(found != noted_.end());
  spans_.push_back({instance.op, instance.cell, instance.iteration, Seconds{found->second.ready},
                    Seconds{found->second.start}, network_.now(), found->second.cause});
  noted_.erase(found);
  return static_cast<std::int32_t>(spans_.size()) - 1;
}

std::int32_t Replay::note_flow(const FlowSpan& flow) {
  if (!options_.record) return -1;
  flows_.push_back(flow);
  flows_.back().start = network_.now();
  return static_cast<std::int32_t>(flows_.size()) - 1;
}

std::int32_t Replay::note_hop(int run, int id, int rounds) {
  const ActiveCollective& collective = *active_[static_cast<std::size_t>(run)];
  const RoutedHop& hop = collective.schedule->hops[static_cast<std::size_t>(id)];
  const Instance& whose = collective.instance;
  const double extra = rounds * hop.half;
  return note_flow({.op = whose.op,
                    .cell = whose.cell,
                    .iteration = whose.iteration,
                    .hop = id,
                    .pipeline = hop.pipeline,
                    .path = hop.path,
                    .bytes = hop.bytes * collective.payload * rounds / hop.rounds + extra,
                    .message_bytes = extra});
}

}  // namespace detail
}  // namespace simsync
