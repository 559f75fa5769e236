#include "sim/plan/compile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/error.hpp"
#include "platforms/topology.hpp"
#include "sim/plan/plan_writer.hpp"
#include "sim/plan/units.hpp"

namespace simsync {
namespace detail {

OpId PlanWriter::add(Op op) {
  if (plan.ops.size() >= kMostOps)
    throw PlanError(fmt::format("the plan has more than {} tasks: cut variables into fewer pieces", kMostOps));
  if (op.kind() == OpKind::Collective && op.collective().protocol.empty()) choose_protocol(op);
  plan.ops.push_back(std::move(op));
  return static_cast<OpId>(plan.ops.size()) - 1;
}

int pieces_of(double bytes, double limit) {
  if (limit <= 0.0) return 1;
  const double pieces = std::max(1.0, std::ceil(bytes / limit));
  if (pieces > static_cast<double>(kMostOps))
    throw PlanError(fmt::format("{:.0f} bytes in pieces of {:.0f} are more than {} pieces", bytes, limit, kMostOps));
  return static_cast<int>(pieces);
}

QueueId PlanWriter::add_queue(Queue queue) {
  plan.queues.push_back(std::move(queue));
  return static_cast<QueueId>(plan.queues.size()) - 1;
}

std::string PlanWriter::label(VariableId variable, std::size_t shard, std::size_t shards) const {
  const std::string& name = model.variable(variable).name;
  return shards > 1 ? name + "[" + std::to_string(shard) + "]" : name;
}

const DeviceClass& PlanWriter::device() const {
  return cluster.devices.at(cluster.group_of(plan.ranks.front().node).device);
}

std::vector<Place> PlanWriter::places(GroupingId grouping) const {
  std::vector<Place> out;
  for (const int rank : plan.grouping(grouping).ranks(0)) out.push_back(plan.ranks[static_cast<std::size_t>(rank)]);
  return out;
}

GroupCosts PlanWriter::collective_costs(GroupingId grouping) const {
  GroupCosts out = group_costs(cluster, places(grouping));
  const Grouping& groups = plan.grouping(grouping);
  for (int group = 1; group < groups.count() && out.others_alike; ++group)
    out.others_alike = group_shape(plan, groups.ranks(group)).alike();
  return out;
}

void PlanWriter::note(const std::string& text) {
  if (std::find(plan.notes.begin(), plan.notes.end(), text) == plan.notes.end()) plan.notes.push_back(text);
}

void PlanWriter::note_ring(const GroupCosts& costs, CollectiveAlgorithm asked) {
  if (asked == CollectiveAlgorithm::Auto) asked = costs.library;
  if (asked == CollectiveAlgorithm::Hierarchical && !costs.alike())
    note("a hierarchical all-reduce needs equal numbers of ranks on all nodes: it runs as a ring here");
}

bool PlanWriter::spans_nodes() const {
  const Grouping& groups = plan.grouping(replicas);
  for (int group = 0; group < groups.count(); ++group)
    if (group_shape(plan, groups.ranks(group)).nodes() > 1) return true;
  return false;
}

double PlanWriter::overlap_share() const {
  const OverlapShares& shares = strategy.graph.collectives_overlap;
  return spans_nodes() ? shares.between_nodes : shares.in_node;
}

CpuClass PlanWriter::slowest_host() const {
  CpuClass slowest = cluster.group_of(plan.nodes.front()).cpu;
  for (const int node : plan.nodes) {
    const CpuClass& cpu = cluster.group_of(node).cpu;
    slowest.threads = std::min(slowest.threads, cpu.threads);
    slowest.sum_rate = std::min(slowest.sum_rate, cpu.sum_rate);
    if (cpu.memory_bandwidth && (!slowest.memory_bandwidth || *cpu.memory_bandwidth < *slowest.memory_bandwidth))
      slowest.memory_bandwidth = cpu.memory_bandwidth;
  }
  return slowest;
}

HostPass host_pass(const CpuClass& cpu, const HostPassRates& rates, double bytes) {
  // Eigen, which does this for TensorFlow, gives a thread blocks of 40,000 cycles (kTaskSize in its TensorCostModel.h):
  // about 15 us, at 4 GB/s 64 KB.
  constexpr double kBlock = 64e3;
  const double all = cpu.threads;
  double threads = 1.0;
  if (rates.parallel) threads = std::clamp(std::floor(bytes / kBlock), 1.0, all);
  double rate = threads * rates.per_thread.value();
  if (cpu.memory_bandwidth) {
    const double most = cpu.memory_bandwidth->value() / rates.passes;
    rate = std::min(rate, most);
    threads = std::max(threads, all * rate / most);  // so that neither is used twice
  }
  return {Seconds{bytes / rate}, threads};
}

bool PlanWriter::hosts_alike() const {
  const CpuClass& first = cluster.group_of(plan.nodes.front()).cpu;
  const bool cpus =
      std::all_of(plan.nodes.begin(), plan.nodes.end(), [&](int node) { return cluster.group_of(node).cpu == first; });
  return cpus && group_shape(plan).alike();
}

Seconds compression_time(const VariableStrategy& how, double bytes, const StepGradients& step,
                         const DeviceClass& device) {
  if (how.compressor == Compressor::None || (how.compressor == Compressor::Fp16 && step.half)) return Seconds{0.0};
  return two_passes(device, bytes);
}

Seconds two_passes(const DeviceClass& device, double bytes) {
  constexpr double kReadsAndWrites = 4.0;
  return Seconds{kReadsAndWrites * bytes / device.memory_bandwidth.value()};
}

namespace {

/// Bytes of a variable that each worker updates.
double updated_bytes(const PlanWriter& writer, VariableId id) {
  const VariableStrategy& how = writer.strategy.variables[id];
  const double share = is_sharded(how) ? writer.update_share.at(writer.sum_of(id)) : 1.0;
  return share * updated_by_workers(how, writer.strategy.graph) *
         static_cast<double>(writer.model.variable(id).bytes().count);
}

/// The gathers of the next step wait for what `done` updates.
void gather_after(PlanWriter& writer, const std::set<OpId>& gathers, OpId done) {
  for (const OpId gather : gathers) writer.plan.ops[static_cast<std::size_t>(gather)].after.push_back({done, 1});
}

/// The forward passes of the next step wait for PlanWriter::gates; `at_first`: the first layer for those of all. So do
/// hosts that wait for their devices.
void gate_next_step(PlanWriter& writer, bool at_first) {
  for (LayerId layer = 0; layer < writer.gates.size(); ++layer) {
    const OpId waiting = writer.micro_steps.front().forward[at_first ? 0 : layer];
    for (const OpId id : writer.gates[layer]) {
      writer.plan.ops[static_cast<std::size_t>(waiting)].after.push_back({id, 1});
      if (writer.first_launch >= 0)
        writer.plan.ops[static_cast<std::size_t>(writer.first_launch)].after.push_back({id, 1});
    }
  }
}

}  // namespace

void write_updates(PlanWriter& writer) {
  const bool at_once = writer.strategy.graph.gate == Gate::All;
  double all_bytes = 0.0;
  for (const auto& variable : writer.model.variables()) all_bytes += static_cast<double>(variable.bytes().count);
  const auto update = [&](const std::vector<OpId>& after, double bytes, std::int32_t layer, std::string label) {
    Op op;
    op.grouping = writer.each;
    op.queue = writer.compute;
    op.reason = {Phase::Update, layer, std::move(label)};
    const Seconds duration = all_bytes > 0.0 ? bytes / all_bytes * writer.profile.update : Seconds{0.0};
    op.body = Compute{.duration = duration, .parts = {{layer, Phase::Update, duration}}, .samples = {}};
    for (const OpId id : after) op.after.push_back({id, 0});
    return writer.add(std::move(op));
  };
  std::vector<std::vector<OpId>> after_by_layer(writer.model.layer_count());
  std::vector<double> bytes_by_layer(writer.model.layer_count(), 0.0);
  std::set<VariableId> updated;
  for (const auto& [variable, op] : writer.to_update) {
    const LayerId layer = writer.model.variable(variable).layer;
    after_by_layer[layer].push_back(op);
    if (updated.insert(variable).second) bytes_by_layer[layer] += updated_bytes(writer, variable);
  }
  std::vector<OpId> all;
  double all_updated = 0.0;
  for (LayerId layer = 0; layer < after_by_layer.size(); ++layer) {
    auto& after = after_by_layer[layer];
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    if (after.empty()) continue;
    if (at_once) {
      all.insert(all.end(), after.begin(), after.end());
      all_updated += bytes_by_layer[layer];
    } else {
      after.push_back(writer.last_step().backward[layer]);
      const OpId done =
          update(after, bytes_by_layer[layer], writer.layer_number(layer), writer.model.layer(layer).name);
      writer.gates[layer].push_back(done);
      gather_after(writer, writer.gathers[layer], done);
    }
  }
  const LayerId first = 0;
  if (at_once && !all.empty()) {
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    all.push_back(writer.last_step().backward.front());
    const OpId done = update(all, all_updated, -1, "all variables");
    writer.gates[first].push_back(done);
    std::set<OpId> gathers;
    for (const auto& of_layer : writer.gathers) gathers.insert(of_layer.begin(), of_layer.end());
    gather_after(writer, gathers, done);
  }
  // Whatever else a strategy gates, a device runs its iterations one after another.
  writer.gates[first].push_back(writer.last_step().backward.front());
  gate_next_step(writer, at_once && !writer.strategy.graph.pull_at_step_start);
}

void merge_compute(Plan& plan) {
  // Op b merges into a when b waits for a alone and nothing else waits for a.
  const std::size_t count = plan.ops.size();
  std::vector<int> dependents(count, 0);
  for (const Op& op : plan.ops)
    for (const After& after : op.after) ++dependents[static_cast<std::size_t>(after.op)];
  std::vector<OpId> into(count);  // where each op ended up
  for (std::size_t i = 0; i < count; ++i) into[i] = static_cast<OpId>(i);
  std::vector<bool> gone(count, false);
  for (std::size_t i = 0; i < count; ++i) {
    Op& op = plan.ops[i];
    if (op.kind() != OpKind::Compute || op.after.size() != 1 || op.after.front().lag != 0) continue;
    const OpId previous = op.after.front().op;
    if (dependents[static_cast<std::size_t>(previous)] != 1) continue;
    const OpId target = into[static_cast<std::size_t>(previous)];
    Op& merged = plan.ops[static_cast<std::size_t>(target)];
    if (merged.kind() != OpKind::Compute || merged.grouping != op.grouping || merged.queue != op.queue) continue;
    const Compute& work = op.compute();
    Compute& all = merged.compute();
    SIMSYNC_ASSERT(all.samples.size() == work.samples.size());
    all.duration += work.duration;
    for (std::size_t s = 0; s < work.samples.size(); ++s) all.samples[s] += work.samples[s];
    all.parts.insert(all.parts.end(), work.parts.begin(), work.parts.end());
    into[i] = target;
    gone[i] = true;
  }
  std::vector<OpId> renumbered(count, -1);
  std::vector<Op> kept;
  kept.reserve(count - static_cast<std::size_t>(std::count(gone.begin(), gone.end(), true)));
  for (std::size_t i = 0; i < count; ++i) {
    if (gone[i]) continue;
    renumbered[i] = static_cast<OpId>(kept.size());
    kept.push_back(std::move(plan.ops[i]));
  }
  const auto moved = [&](OpId id) { return renumbered[static_cast<std::size_t>(into[static_cast<std::size_t>(id)])]; };
  for (Op& op : kept)
    for (After& after : op.after) after.op = moved(after.op);
  if (plan.progress.step_end >= 0) plan.progress.step_end = moved(plan.progress.step_end);
  if (plan.progress.global_step >= 0) plan.progress.global_step = moved(plan.progress.global_step);
  plan.ops = std::move(kept);
}

}  // namespace detail

namespace {

/// Whether messages of whole hosts, rather than of devices, are scheduled: a queue has to hold them all.
bool schedules_hosts(const Strategy& strategy) {
  for (const auto& variable : strategy.variables)
    for (const Shard& shard : variable.shards)
      if (const auto* ps = std::get_if<PsSynchronizer>(&shard.synchronizer))
        if (ps->local_aggregation || ps->local_replication) return true;
  return false;
}

}  // namespace

namespace detail {

void write_queues(PlanWriter& writer) {
  const GraphStrategy& graph = writer.strategy.graph;
  writer.compute = writer.add_queue({.name = "compute", .grouping = kEachRank, .slots = 1});
  writer.host = writer.add_queue({.name = "host", .grouping = kEachNode, .slots = writer.slowest_host().threads});
  const Scheduling& scheduling = graph.scheduling;
  writer.inside_node =
      writer.add_queue({.name = "inside node", .grouping = kEachNode, .slots = 1, .ordering = scheduling.ordering});
  writer.to_host =
      writer.add_queue({.name = "copy to host", .grouping = kEachRank, .slots = 1, .ordering = scheduling.ordering});
  writer.to_device =
      writer.add_queue({.name = "copy to device", .grouping = kEachRank, .slots = 1, .ordering = scheduling.ordering});
  const auto credit = static_cast<double>(scheduling.credit.count);
  const bool scheduled = credit > 0.0;
  const Queue limited{.name = {},
                      .grouping = kWholeJob,
                      .slots = 0,
                      .credit = credit,
                      .strict = scheduling.credit_is_strict,
                      .ordering = scheduling.ordering};
  const auto add = [&](const char* name, GroupingId grouping) {
    Queue queue = limited;
    queue.name = name;
    queue.grouping = grouping;
    return writer.add_queue(std::move(queue));
  };
  if (graph.serial_collectives) {
    writer.communication =
        writer.add_queue({.name = "communication", .grouping = kWholeJob, .slots = 1, .ordering = scheduling.ordering});
  } else if (scheduled) {
    writer.communication = add("communication", kWholeJob);
  }
  if (!scheduled) return;
  const GroupingId sender = schedules_hosts(writer.strategy) ? kEachNode : kEachRank;
  if (!scheduling.pulls_only) writer.push = add("push", sender);
  writer.pull = add("pull", sender);
}

}  // namespace detail

GroupShape group_shape(const Plan& plan) {
  return {.node_begin = plan.node_begin};
}

GroupShape group_shape(const Plan& plan, std::span<const int> ranks) {
  GroupShape out;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto node_of = [&](std::size_t at) { return plan.grouping(kEachNode).group_of(ranks[at]); };
    if (i == 0 || node_of(i) != node_of(i - 1)) out.node_begin.push_back(static_cast<int>(i));
  }
  out.node_begin.push_back(static_cast<int>(ranks.size()));
  return out;
}

HopPath hop_path(const Topology& topology, const CollectiveCosts& costs, CollectiveAlgorithm algorithm,
                 const HopEnds& ends) {
  const Place from = ends.from;
  const Place to = ends.to;
  const bool inter = from.node != to.node;
  const bool direct = algorithm == CollectiveAlgorithm::HalvingDoubling || algorithm == CollectiveAlgorithm::Pairwise;
  // Channels are streams of the network; inside a node a collective is one stream.
  const double streams = streams_of_hop(costs, algorithm, inter);
  HopPath out;
  if (!inter) {
    out.path = direct ? topology.path(from, to) : topology.ring_path(from, to, ends.gpus);
    out.rate = streams * out.path.stream_cap;
    return out;
  }
  const int far = ends.loop ? from.node : to.node;
  const bool crosses_once = !direct && algorithm != CollectiveAlgorithm::Hierarchical;
  const auto nics = topology.nics_of(from.node, crosses_once ? ends.gpus : std::vector{from.gpu});
  const bool together = crosses_once && nics.several;
  out.path = together ? topology.between_nodes(from.node, far) : topology.network_path(from, {far, to.gpu});
  out.rate = std::min(streams * out.path.stream_cap, nics.rate);
  return out;
}

Plan compile(const Model& model, const Profile& profile, const Cluster& cluster, const Strategy& strategy) {
  check(strategy, model, cluster);
  SIMSYNC_ASSERT(profile.layers.size() == model.layer_count());
  SIMSYNC_ASSERT(profile.micro_steps == strategy.graph.micro_steps);
  Plan plan;
  plan.model = model.name();
  plan.strategy = strategy.name;
  plan.server_connection = strategy.graph.shared_process ? 0 : 1;
  plan.draws.step_variation = profile.variation;
  plan.draws.seed = profile.seed;
  plan.progress.backups = strategy.graph.backups;
  plan.set_ranks(cluster.workers(strategy.graph.workers));
  plan.ops.reserve(3 * model.layer_count() + model.variables().size());  // as many as DDP has, and more
  detail::PlanWriter writer{.model = model, .profile = profile, .cluster = cluster, .strategy = strategy, .plan = plan};
  detail::write_queues(writer);
  if (strategy.graph.parallel.is_trivial() && !strategy.graph.parallel.host.any()) {
    for (LayerId layer = 0; layer < model.layer_count(); ++layer) plan.layers.push_back(model.layer(layer).name);
    detail::write_compute(writer);
    detail::write_all_reduce(writer);
    detail::write_parameter_servers(writer);
    detail::write_sharded(writer);
    detail::write_sufficient_factors(writer);
    detail::write_updates(writer);
  } else {
    detail::write_stages(writer);
  }
  detail::merge_compute(plan);
  detail::apply_ratios(plan, cluster.collective);
  check(plan);
  return plan;
}

}  // namespace simsync
