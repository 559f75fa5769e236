#include "strategies/search/sampler.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/error.hpp"
#include "strategies/families.hpp"
#include "strategies/partition.hpp"
#include "strategies/search/deal.hpp"
#include "strategies/transport.hpp"

namespace simsync {
namespace {

constexpr const char* kName = "search";  ///< of what is drawn

template <class Value>
const Value& one_of(const std::vector<Value>& values, Decisions& decisions) {
  return values[decisions.below(values.size())];
}

bool one_of(const std::vector<bool>& values, Decisions& decisions) {
  return values[decisions.below(values.size())];
}

/// The same by a coin where there is a choice.
bool draw_truth(const std::vector<bool>& values, Decisions& decisions) {
  return values.size() > 1 ? decisions.coin(0.5) : values.front();
}

/// Every shard of a strategy that `Kind` synchronizes, in the order of the model, and its bytes.
template <class Kind>
struct ShardsBy {
  std::vector<Kind*> synchronizers;
  std::vector<double> bytes;

  ShardsBy(Strategy& strategy, const Model& model) {
    for (VariableStrategy& entry : strategy.variables) add(entry, model);
  }
  ShardsBy(Strategy& strategy, const Model& model, const std::vector<VariableId>& of) {
    for (const VariableId id : of) add(strategy.variables[id], model);
  }

private:
  void add(VariableStrategy& entry, const Model& model) {
    const Variable& variable = model.variable(entry.variable);
    for (Shard& shard : entry.shards) {
      auto* synchronizer = std::get_if<Kind>(&shard.synchronizer);
      if (synchronizer == nullptr) continue;
      synchronizers.push_back(synchronizer);
      bytes.push_back(static_cast<double>(shard.elements * size_of(variable.dtype)));
    }
  }
};

bool is_dense_matrix(const Model& model, const Variable& variable) {
  return model.layer(variable.layer).kind == LayerKind::Dense && variable.shape.size() == 2 && !variable.sparse;
}

/// Both have every variable on servers or in collectives, and agree on what a sparse one sends.
bool can_cross(const Strategy& a, const Strategy& b) {
  return schedule_of(a) != Schedule::Sharded && schedule_of(b) != Schedule::Sharded;
}

}  // namespace

Schedule schedule_of(const Strategy& strategy) {
  if (has_sharded(strategy)) return Schedule::Sharded;
  if (strategy.graph.pull_at_step_start) return Schedule::ReadAtStart;
  return strategy.graph.gate == Gate::PerVariable ? Schedule::Priority : Schedule::WaitFree;
}

StrategySampler::StrategySampler(SearchSpace space, const SearchTarget& target)
    : space_(std::move(space)), target_(target), hosts_(hosts_of(target.cluster, target.workers).all()) {
  const auto workers = target.cluster.workers(target.workers);
  for (std::size_t i = 1; i < workers.size(); ++i)
    has_neighbors_ = has_neighbors_ || workers[i].node == workers[i - 1].node;
  const bool has_network = target.cluster.node_count() > 1;
  for (const Place& host : hosts_)
    bandwidths_.push_back(has_network ? nic_bandwidths(target.cluster, {host}).front() : 1.0);
  const bool is_sharded_only = space_.schedules == std::vector<Schedule>{Schedule::Sharded};
  if (!is_sharded_only && !has(SynchronizerKind::ParameterServer) && !has(SynchronizerKind::AllReduce))
    throw InputError("the search space has no synchronizer for variables without sufficient factors",
                     "add parameter-server or all-reduce to the dimension 'synchronizers'");
}

bool StrategySampler::has(SynchronizerKind kind) const {
  return std::find(space_.synchronizers.begin(), space_.synchronizers.end(), kind) != space_.synchronizers.end();
}

Strategy StrategySampler::draw(Decisions& decisions) const {
  Strategy out;
  out.name = kName;
  const Schedule schedule = one_of(space_.schedules, decisions);
  out.graph = draw_graph(schedule, decisions);
  const std::size_t count = target_.model.variables().size();
  if (schedule == Schedule::Sharded) {
    for (VariableId id = 0; id < count; ++id) {
      out.variables.push_back(whole_variable(target_.model, id, ShardedSynchronizer{}));
      out.variables.back().sparse_as_dense = target_.model.variable(id).sparse;
    }
    return out;
  }
  const Shares shares = draw_shares(decisions);
  std::vector<VariableId> all(count);
  std::iota(all.begin(), all.end(), VariableId{0});
  for (const VariableId id : all) out.variables.push_back(draw_variable(id, shares, decisions));
  deal_servers(out, all, decisions);
  deal_groups(out, decisions);
  return out;
}

StrategySampler::Shares StrategySampler::draw_shares(Decisions& decisions) const {
  Shares out;
  const bool served = has(SynchronizerKind::ParameterServer);
  out.served = served && has(SynchronizerKind::AllReduce) ? decisions.share() : served ? 1.0 : 0.0;
  if (space_.shards > 1) out.cut = decisions.share();
  if (space_.compressors.size() > 1) out.encoded = decisions.share();
  if (has(SynchronizerKind::SufficientFactors)) out.factors = decisions.share();
  return out;
}

/// What TensorFlow's servers, and those of ps-lite and BytePS, do by default is what their builders say.
GraphStrategy StrategySampler::draw_graph(Schedule schedule, Decisions& decisions) const {
  GraphStrategy graph;
  graph.workers = target_.workers;
  graph.micro_steps = target_.micro_steps;
  graph.recompute = target_.recompute;
  graph.algorithm = one_of(space_.algorithms, decisions);
  switch (schedule) {
    case Schedule::ReadAtStart:
      graph.pull_at_step_start = true;
      if (!target_.own_runner) apply_tensorflow_servers(graph);
      break;
    case Schedule::WaitFree:
      graph.fusion = draw_fusion(schedule, decisions);
      graph.aggregate_on_gpu = has_neighbors_ && decisions.coin(0.5);
      break;
    case Schedule::Priority:
      graph.fusion = draw_fusion(schedule, decisions);
      draw_scheduling(graph, decisions);
      break;
    case Schedule::Sharded:
      draw_sharding(graph, decisions);
      break;
  }
  return graph;
}

Fusion StrategySampler::draw_fusion(Schedule schedule, Decisions& decisions) const {
  Fusion out;
  std::vector<FusionKind> kinds;
  // What is merged by time has no priority of its own.
  for (const FusionKind kind : space_.fusions)
    if (schedule != Schedule::Priority || kind == FusionKind::Groups || kind == FusionKind::None) kinds.push_back(kind);
  if (kinds.empty()) kinds.push_back(FusionKind::None);
  out.kind = one_of(kinds, decisions);
  out.copies =
      out.kind == FusionKind::Buckets || out.kind == FusionKind::Cycle || out.kind == FusionKind::MergedGradient;
  if (out.kind == FusionKind::Buckets) out.limit = one_of(space_.buckets, decisions);
  if (out.kind == FusionKind::Cycle) {
    out.threshold = one_of(space_.thresholds, decisions);
    out.cycle = one_of(space_.cycles, decisions);
  }
  return out;
}

void StrategySampler::draw_scheduling(GraphStrategy& graph, Decisions& decisions) const {
  graph.gate = Gate::PerVariable;
  graph.update_at = decisions.coin(0.5) ? UpdateAt::Worker : UpdateAt::Server;
  graph.aggregate_on_gpu = has_neighbors_ && decisions.coin(0.5);
  graph.scheduling = {.ordering = Ordering::Priority,
                      .partition = one_of(space_.pieces, decisions),
                      .credit = one_of(space_.credits, decisions)};
}

void StrategySampler::draw_sharding(GraphStrategy& graph, Decisions& decisions) const {
  Sharding& sharding = graph.sharding;
  sharding.stage = one_of(space_.stages, decisions);
  const int on_node = target_.cluster.group_of(target_.cluster.workers(1).front().node).gpus;
  const bool has_groups = on_node > 1 && on_node < target_.workers && target_.workers % on_node == 0;
  if (has_groups && draw_truth(space_.shard_groups, decisions)) sharding.group = on_node;
  sharding.min_unit = one_of(space_.units, decisions);
  if (sharding.stage < 3) return;
  sharding.reshard_after_forward = decisions.coin(0.5);
  sharding.prefetch = static_cast<int>(decisions.below(3));
}

VariableStrategy StrategySampler::draw_variable(VariableId id, const Shares& shares, Decisions& decisions) const {
  const Variable& variable = target_.model.variable(id);
  VariableStrategy entry;
  entry.variable = id;
  entry.priority = static_cast<int>(variable.layer);
  if (is_dense_matrix(target_.model, variable) && decisions.coin(shares.factors)) {
    entry.shards = {{.elements = variable.elements(), .synchronizer = SfbSynchronizer{}}};
    return entry;
  }
  entry.shards = draw_shards(variable, shares, entry, decisions);
  std::vector<Compressor> encoded;
  for (const Compressor kind : space_.compressors)
    if (kind != Compressor::None) encoded.push_back(kind);
  const bool can_stay = encoded.size() < space_.compressors.size();
  if (!encoded.empty() && !variable.sparse && (!can_stay || decisions.coin(shares.encoded)))
    entry.compressor = one_of(encoded, decisions);
  return entry;
}

std::vector<Shard> StrategySampler::draw_shards(const Variable& variable, const Shares& shares, VariableStrategy& entry,
                                                Decisions& decisions) const {
  std::vector<int> axes = splittable_axes(variable);
  if (!space_.any_axis) std::erase_if(axes, [](int axis) { return axis > 0; });
  std::vector<std::int64_t> elements{variable.elements()};
  if (!axes.empty() && variable.bytes() >= space_.partition_above && decisions.coin(shares.cut)) {
    const int axis = one_of(axes, decisions);
    const std::int64_t most = std::min(space_.shards, variable.shape[static_cast<std::size_t>(axis)]);
    const auto count = 2 + static_cast<std::int64_t>(decisions.below(static_cast<std::size_t>(most - 1)));
    elements = split_axis(variable, axis, count);
    entry.partition_axis = axis;
  }
  std::vector<Shard> out;
  for (const std::int64_t count : elements)
    out.push_back({.elements = count, .synchronizer = draw_synchronizer(variable, shares, decisions)});
  return out;
}

/// Servers and groups are dealt later.
Synchronizer StrategySampler::draw_synchronizer(const Variable& variable, const Shares& shares,
                                                Decisions& decisions) const {
  if (!decisions.coin(shares.served)) return AllReduceSynchronizer{};
  PsSynchronizer out;
  if (!variable.sparse && has_neighbors_) out.local_replication = one_of(space_.local_replication, decisions);
  return out;
}

void StrategySampler::deal_servers(Strategy& strategy, const std::vector<VariableId>& of, Decisions& decisions) const {
  const ShardsBy<PsSynchronizer> shards(strategy, target_.model, of);
  if (shards.bytes.empty()) return;
  const std::size_t most = space_.servers > 0
                               ? std::min<std::size_t>(hosts_.size(), static_cast<std::size_t>(space_.servers))
                               : hosts_.size();
  // Some of the hosts, each as likely: the first of a shuffle that stops there.
  std::vector<std::size_t> serving(hosts_.size());
  std::iota(serving.begin(), serving.end(), std::size_t{0});
  const std::size_t count = decisions.count(most);
  for (std::size_t i = 0; count < hosts_.size() && i < count; ++i)
    std::swap(serving[i], serving[i + decisions.below(serving.size() - i)]);
  std::vector<double> weights;
  for (std::size_t i = 0; i < count; ++i) weights.push_back(bandwidths_[serving[i]]);
  const ServerRule rule = one_of(space_.server_rules, decisions);
  const std::vector<std::size_t> dealt = deal_to_servers(rule, shards.bytes, weights, decisions);
  for (std::size_t i = 0; i < dealt.size(); ++i) shards.synchronizers[i]->server = hosts_[serving[dealt[i]]];
}

void StrategySampler::keep_servers(Strategy& strategy, Decisions& decisions) const {
  if (space_.servers == 0) return;
  std::set<Place> serving;
  for (const auto* shard : ShardsBy<PsSynchronizer>(strategy, target_.model).synchronizers)
    serving.insert(shard->server);
  if (static_cast<std::int64_t>(serving.size()) <= space_.servers) return;
  std::vector<VariableId> all(strategy.variables.size());
  std::iota(all.begin(), all.end(), VariableId{0});
  deal_servers(strategy, all, decisions);
}

void StrategySampler::deal_groups(Strategy& strategy, Decisions& decisions) const {
  const ShardsBy<AllReduceSynchronizer> shards(strategy, target_.model);
  if (shards.bytes.empty() || strategy.graph.fusion.kind != FusionKind::Groups) return;
  const std::size_t most = std::min(shards.bytes.size(), static_cast<std::size_t>(space_.groups));
  const GroupRule rule = one_of(space_.group_rules, decisions);
  const std::vector<int> dealt = deal_to_groups(rule, shards.bytes, decisions.count(most), decisions);
  for (std::size_t i = 0; i < dealt.size(); ++i) shards.synchronizers[i]->group = dealt[i];
}

/// Some that follow each other in the model, or all of one kind of layer, all drawn alike.
void StrategySampler::redraw_variables(Strategy& strategy, Decisions& decisions) const {
  const std::size_t count = strategy.variables.size();
  std::vector<VariableId> chosen;
  const VariableId first = decisions.below(count);
  if (decisions.coin(0.5)) {
    const std::size_t most = std::min(count - first, std::size_t{1} << decisions.below(6));
    for (std::size_t i = 0; i < most; ++i) chosen.push_back(first + i);
  } else {
    const auto kind_of = [&](VariableId id) { return target_.model.layer(target_.model.variable(id).layer).kind; };
    const std::size_t axes = target_.model.variable(first).shape.size();
    for (VariableId id = 0; id < count; ++id)
      if (kind_of(id) == kind_of(first) && target_.model.variable(id).shape.size() == axes) chosen.push_back(id);
  }
  Shares shares = draw_shares(decisions);
  const auto all_or_none = [&](double share) { return decisions.coin(share) ? 1.0 : 0.0; };
  shares.served = all_or_none(shares.served);
  shares.factors = all_or_none(shares.factors);
  for (const VariableId id : chosen) strategy.variables[id] = draw_variable(id, shares, decisions);
  deal_servers(strategy, chosen, decisions);
  keep_servers(strategy, decisions);
}

Strategy StrategySampler::mutated(const Strategy& strategy, Decisions& decisions) const {
  enum class Change { Variables, Servers, Groups, Graph, Count };
  Strategy out = strategy;
  out.name = kName;
  if (schedule_of(strategy) == Schedule::Sharded) return draw(decisions);
  std::vector<VariableId> all(out.variables.size());
  std::iota(all.begin(), all.end(), VariableId{0});
  switch (static_cast<Change>(decisions.below(static_cast<std::size_t>(Change::Count)))) {
    case Change::Servers:
      deal_servers(out, all, decisions);
      break;
    case Change::Groups:
      deal_groups(out, decisions);
      break;
    case Change::Graph: {
      const Schedule schedule = one_of(space_.schedules, decisions);
      if (schedule == Schedule::Sharded) return draw(decisions);
      out.graph = draw_graph(schedule, decisions);
      deal_groups(out, decisions);
      break;
    }
    case Change::Variables:
    case Change::Count:
      redraw_variables(out, decisions);
      deal_groups(out, decisions);
      break;
  }
  return out;
}

Strategy StrategySampler::crossed(const Strategy& a, const Strategy& b, Decisions& decisions) const {
  Strategy out = a;
  out.name = kName;
  if (!can_cross(a, b)) return out;
  const std::size_t first = decisions.below(out.variables.size());
  const std::size_t last = first + 1 + decisions.below(out.variables.size() - first);
  for (std::size_t id = first; id < last; ++id) out.variables[id] = b.variables[id];
  keep_servers(out, decisions);
  return out;
}

}  // namespace simsync
