#include "sim/problem/probe.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/parse_units.hpp"
#include "platforms/reader.hpp"
#include "sim/plan/compile.hpp"
#include "sim/plan/server_exchange.hpp"

namespace simsync {
namespace {

constexpr double kRead = 1024.0;  ///< bytes, of ProbeKind::Reads

/// Devices of a node of the group that grows.
int devices_per_node(const Cluster& cluster) {
  const auto last = std::find_if(cluster.groups.rbegin(), cluster.groups.rend(),
                                 [](const NodeGroup& group) { return group.gpus > 0; });
  if (last == cluster.groups.rend())
    throw PlanError(fmt::format("cluster '{}' has no devices to calibrate", cluster.name));
  return last->gpus;
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

ServerExchange exchange_of(const Probe& probe, const Cluster& cluster) {
  ServerExchange out{
      .name = name_of(probe.kind), .ranks = places_of(probe, cluster), .tensors = probe.count, .bytes = probe.bytes};
  out.server = server_of(cluster, out.ranks);
  return out;
}

/// The first rank sends; the plan has one rank only, so that nobody else does.
Plan message_between(const Probe& probe, const Cluster& cluster) {
  const std::vector<Place> both = places_of(probe, cluster);
  return message_plan(cluster, {.name = name_of(probe.kind),
                                .ranks = {both.front()},
                                .server = both.at(1),
                                .tensors = probe.count,
                                .bytes = probe.bytes});
}

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

std::string describe(const Probe& probe) {
  std::string out = fmt::format("{} of {}, {} rank{}", name_of(probe.kind), format_bytes(probe.bytes), probe.ranks,
                                probe.ranks == 1 ? "" : "s");
  if (probe.per_node > 0) out += fmt::format(", {} a node", probe.per_node);
  if (probe.count > 1) out += fmt::format(", {} times", probe.count);
  if (probe.kind == ProbeKind::Overlap) out += fmt::format(", beside {} of compute", format_seconds(probe.compute));
  return out;
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
      return push_plan(cluster, exchange_of(probe, cluster));
    case ProbeKind::Pull:
      return pull_plan(cluster, exchange_of(probe, cluster));
    case ProbeKind::Message:
      return message_between(probe, cluster);
    case ProbeKind::Overlap:
      return overlap_plan(probe, cluster);
    case ProbeKind::Reads:
      return reads_plan(cluster, exchange_of(probe, cluster), kRead);
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
