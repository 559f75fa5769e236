#include "sim/problem/probe.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "platforms/reader.hpp"
#include "sim/plan/compile.hpp"

namespace simsync {
namespace {

constexpr double kRead = 1024.0;  ///< bytes, of ProbeKind::Reads

/// Devices of a node of the group that grows.
int devices_per_node(const Cluster& cluster) {
  for (auto group = cluster.groups.rbegin(); group != cluster.groups.rend(); ++group)
    if (group->gpus > 0) return group->gpus;
  throw PlanError(fmt::format("cluster '{}' has no devices to calibrate", cluster.name));
}

int ranks_per_node(const Probe& probe, const Cluster& cluster) {
  return probe.per_node > 0 ? probe.per_node : devices_per_node(cluster);
}

int nodes_of(const Probe& probe, const Cluster& cluster) {
  const int each = ranks_per_node(probe, cluster);
  return (probe.ranks + each - 1) / each;
}

bool has_host_without_devices(const Cluster& cluster) {
  return std::any_of(cluster.groups.begin(), cluster.groups.end(), [](const NodeGroup& g) { return g.gpus == 0; });
}

Place server_of(const Cluster& cluster, const std::vector<Place>& ranks) {
  for (int node = 0; node < cluster.node_count(); ++node)
    if (cluster.group_of(node).gpus == 0) return {node, -1};
  return {ranks.back().node + 1, -1};
}

CollectivePrimitive primitive_of(ProbeKind kind) {
  if (kind == ProbeKind::AllGather) return CollectivePrimitive::AllGather;
  return kind == ProbeKind::ReduceScatter ? CollectivePrimitive::ReduceScatter : CollectivePrimitive::AllReduce;
}

/// Compute of every rank, and a chain of collectives that starts with it.
Plan overlap_plan(const Probe& probe, const Cluster& cluster) {
  Plan plan =
      collective_plan(cluster, places_of(probe, cluster), CollectivePrimitive::AllReduce, probe.algorithm, probe.bytes);
  plan.model = plan.strategy = name_of(probe.kind);
  plan.queues.push_back({.name = "compute", .grouping = kEachRank, .slots = 1});
  const Op collective = std::move(plan.ops.front());
  Op compute;
  compute.grouping = kEachRank;
  compute.queue = 0;
  compute.body = Compute{.duration = probe.compute};
  compute.timed = true;
  compute.reason = {Phase::Backward, -1, name_of(probe.kind)};
  const OpId last = probe.count;
  compute.after = {{0, 1}, {last, 1}};
  plan.ops = {std::move(compute)};
  for (OpId id = 1; id <= last; ++id) {
    plan.ops.push_back(collective);
    plan.ops.back().after = {{id - 1, 0}};
  }
  plan.ops[1].after = plan.ops.front().after;
  return plan;
}

/// Ops of a plan that is not a training step: transfers and a server's work.
class Transfers {
public:
  Transfers(const Probe& probe, const Cluster& cluster) : probe_(probe), cluster_(cluster) {
    plan_.set_ranks(places_of(probe, cluster));
    plan_.model = plan_.strategy = name_of(probe.kind);
    plan_.tensors = probe.count;
  }

  Plan push() {
    const Place server = serve();
    const std::vector<OpId> sent = pushes(server);
    const OpId all = all_received(server);
    for (const OpId id : sent) at(id).after = {{all, 1}};
    return std::move(plan_);
  }

  /// Tensors arrive in order: they share one stream of their worker's connection.
  Plan pull() {
    const Place server = serve();
    const OpId start = work(server, kWholeJob, HostAction::Serve, Seconds{0.0}, {});
    at(start).after = {{pulls(server, start, kEachRank).back(), 1}};
    return std::move(plan_);
  }

  /// The queue of the reads is the first rank's, so that it asks for each.
  Plan reads() {
    const Place server = serve();
    const OpId start = work(server, kWholeJob, HostAction::Serve, Seconds{0.0}, {});
    plan_.queues.push_back({.name = "reads", .grouping = kWholeJob, .slots = 1});
    for (const OpId id : pulls(server, start, kWholeJob)) {
      Op& op = at(id);
      op.queue = 1;
      op.transfer().bytes = kRead;
      op.transfer().receiver_initiated = true;
      op.timed = true;
      received_.push_back({id, 0});
    }
    for (int rank = 1; rank < plan_.rank_count(); ++rank) {
      ++plan_.tensors;
      const Place other{plan_.ranks[static_cast<std::size_t>(rank)].node, -1};
      at(push(server, kWholeJob, {End::Kind::Fixed, other})).after = {{start, 0}};
    }
    at(start).after = {{all_received(server), 1}};
    return std::move(plan_);
  }

  /// The first rank sends; the plan has one rank only, so that nobody else does.
  Plan message() {
    const Place to = plan_.ranks.at(1);
    Plan plan;
    plan.set_ranks({plan_.ranks.front()});
    plan.model = plan.strategy = name_of(probe_.kind);
    plan.servers = {to};
    plan.tensors = probe_.count;
    plan_ = std::move(plan);
    OpId last = 0;
    for (tensor_ = 0; tensor_ < probe_.count; ++tensor_)
      last = transfer(Phase::Push, kEachRank, {End::Kind::Device, {}}, {End::Kind::Fixed, to}, {});
    for (Op& op : plan_.ops) op.after = {{last, 1}};
    return std::move(plan_);
  }

private:
  /// The transfer of one more tensor to a server, which tells in `received_` that it has summed it.
  OpId push(Place server, GroupingId grouping, End from) {
    const CpuClass& cpu = cluster_.group_of(server.node).cpu;
    const OpId sent = transfer(Phase::Push, grouping, from, {End::Kind::Fixed, server}, {});
    const Seconds duration = cpu.per_tensor + Seconds{probe_.bytes / cpu.sum_rate.value()};
    const OpId sum = work(server, grouping, HostAction::Sum, duration, {{dispatched(server, grouping, sent), 0}});
    Op& op = at(sum);
    op.host().bytes = probe_.bytes;
    op.host().one_at_a_time = true;  // of one tensor: the accumulator holds a lock
    received_.push_back({work(server, kWholeJob, HostAction::Apply, Seconds{0.0}, {{sum, 0}}), 0});
    ++tensor_;
    return sent;
  }

  /// Ends when all that `received_` names has ended.
  OpId all_received(Place server) {
    tensor_ = 0;
    return work(server, kWholeJob, HostAction::Serve, Seconds{0.0}, received_);
  }

  std::vector<OpId> pushes(Place server) {
    std::vector<OpId> sent;
    for (int i = 0; i < probe_.count; ++i) sent.push_back(push(server, kEachRank, {End::Kind::Host, {}}));
    return sent;
  }

  /// The transfers of `count` more tensors from a server, once `start` has ended.
  std::vector<OpId> pulls(Place server, OpId start, GroupingId grouping) {
    std::vector<OpId> read;
    for (int i = 0; i < probe_.count; ++i, ++tensor_) {
      const Seconds duration = cluster_.group_of(server.node).cpu.per_tensor;
      const OpId served =
          work(server, grouping, HostAction::Serve, duration, {{dispatched(server, grouping, start), 0}});
      read.push_back(transfer(Phase::Pull, grouping, {End::Kind::Fixed, server}, {End::Kind::Host, {}}, {{served, 0}}));
      at(read.back()).transfer().connection = 1;
    }
    return read;
  }

  Place serve() {
    const Place server = server_of(cluster_, plan_.ranks);
    plan_.servers = {server};
    const int threads = std::max(1, cluster_.group_of(server.node).cpu.threads);
    plan_.queues.push_back({.name = name_of(server) + " server", .grouping = kWholeJob, .slots = threads});
    return server;
  }
  Op& at(OpId id) { return plan_.ops[static_cast<std::size_t>(id)]; }
  OpId add(Op op) {
    plan_.ops.push_back(std::move(op));
    return static_cast<OpId>(plan_.ops.size()) - 1;
  }
  OpId transfer(Phase phase, GroupingId grouping, End from, End to, std::vector<After> after) {
    Op op;
    op.grouping = grouping;
    op.body = Transfer{.from = from, .to = to, .bytes = probe_.bytes, .tensor = tensor_, .streams = 1};
    op.after = std::move(after);
    op.reason = {phase, -1, name_of(probe_.kind)};
    return add(std::move(op));
  }
  OpId work(Place server, GroupingId grouping, HostAction action, Seconds duration, std::vector<After> after) {
    Op op;
    op.grouping = grouping;
    op.queue = 0;
    op.body = HostWork{.action = action, .at = {End::Kind::Fixed, server}, .duration = duration, .tensor = tensor_};
    op.after = std::move(after);
    op.reason = {phase_of(action), -1, name_of(probe_.kind)};
    return add(std::move(op));
  }

  OpId dispatched(Place server, GroupingId grouping, OpId arrived) {
    const Seconds latency = cluster_.group_of(server.node).cpu.dispatch_latency;
    if (latency.value() <= 0.0) return arrived;
    const OpId id = work(server, grouping, HostAction::Dispatch, latency, {{arrived, 0}});
    at(id).queue = -1;
    return id;
  }

  const Probe& probe_;
  const Cluster& cluster_;
  Plan plan_;
  std::int32_t tensor_ = 0;  ///< of the ops that are written
  std::vector<After> received_;
};

}  // namespace

const char* name_of(ProbeKind kind) {
  switch (kind) {
    case ProbeKind::AllReduce:
      return "all-reduce";
    case ProbeKind::AllGather:
      return "all-gather";
    case ProbeKind::ReduceScatter:
      return "reduce-scatter";
    case ProbeKind::Push:
      return "push";
    case ProbeKind::Pull:
      return "pull";
    case ProbeKind::Message:
      return "message";
    case ProbeKind::Overlap:
      return "overlap";
    case ProbeKind::Reads:
      return "reads";
  }
  return "?";
}

bool times_some_ops(ProbeKind kind) {
  return kind == ProbeKind::Overlap || kind == ProbeKind::Reads;
}

std::vector<Place> places_of(const Probe& probe, const Cluster& cluster) {
  const int each = ranks_per_node(probe, cluster);
  std::vector<Place> out;
  for (int node = 0; node < cluster.node_count() && std::ssize(out) < probe.ranks; ++node) {
    const int here = std::min(each, cluster.group_of(node).gpus);
    if (probe.per_node > 0 && here > 0 && here < each)
      throw PlanError(fmt::format("{}: {} ranks on a node, a node of cluster '{}' has {} devices", probe.where, each,
                                  cluster.name, here));
    for (int gpu = 0; gpu < here && std::ssize(out) < probe.ranks; ++gpu) out.push_back({node, gpu});
  }
  if (std::ssize(out) < probe.ranks)
    throw PlanError(fmt::format("{}: {} ranks do not fit on cluster '{}'", probe.where, probe.ranks, cluster.name));
  return out;
}

Cluster grown_for(const Cluster& cluster, const std::vector<Probe>& probes) {
  int nodes = 1;
  for (const Probe& probe : probes) {
    const bool host = probe.to_server() && !has_host_without_devices(cluster);
    nodes = std::max(nodes, nodes_of(probe, cluster) + (host ? 1 : 0));
  }
  return grown_to(cluster, nodes * devices_per_node(cluster));
}

Seconds CollectiveEstimates::of(const Probe& probe) {
  SIMSYNC_ASSERT(probe.collective());
  const auto [known, fresh] = groups_.try_emplace({probe.ranks, probe.per_node});
  GroupCosts& group = known->second;
  if (fresh) group = group_costs(cluster_, places_of(probe, cluster_));
  const CollectivePrimitive primitive = primitive_of(probe.kind);
  const bool own = is_own(cluster_.collective, probe.algorithm);
  return (own ? ratio_of(cluster_.collective, primitive, group.shape, probe.bytes) : 1.0) *
         (collective_setup(cluster_.collective, probe.bytes) +
          choose(primitive, probe.algorithm, group, probe.bytes).time);
}

Plan plan_of(const Probe& probe, const Cluster& cluster) {
  switch (probe.kind) {
    case ProbeKind::Push:
      return Transfers(probe, cluster).push();
    case ProbeKind::Pull:
      return Transfers(probe, cluster).pull();
    case ProbeKind::Message:
      return Transfers(probe, cluster).message();
    case ProbeKind::Overlap:
      return overlap_plan(probe, cluster);
    case ProbeKind::Reads:
      return Transfers(probe, cluster).reads();
    case ProbeKind::AllReduce:
    case ProbeKind::AllGather:
    case ProbeKind::ReduceScatter:
      break;
  }
  Plan plan =
      collective_plan(cluster, places_of(probe, cluster), primitive_of(probe.kind), probe.algorithm, probe.bytes);
  plan.ops.front().after = {{0, 1}};
  return plan;
}

}  // namespace simsync
