#include "strategies/strategy.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "strategies/limits.hpp"

namespace simsync {
namespace {

/// Why the shards cannot be synchronized without the latest workers; nullptr when they can.
const char* obstacle_to_backups(const VariableStrategy& entry) {
  for (const Shard& shard : entry.shards) {
    const auto* ps = std::get_if<PsSynchronizer>(&shard.synchronizer);
    if (ps == nullptr) return "is on no parameter server: a collective needs all workers";
    if (!ps->sync || ps->staleness > 0) return "needs sync = true and staleness = 0";
    if (ps->local_aggregation)
      return "has gradients summed on hosts (local_aggregation), where each has to count by itself";
    if (ps->local_replication) return "has copies on hosts (local_replication), which the step would wait for";
  }
  return nullptr;
}

/// Checks one variable's entry; every message begins with the strategy and the variable.
class EntryCheck {
public:
  EntryCheck(const Strategy& strategy, const Model& model, const Cluster& cluster, const VariableStrategy& entry)
      : strategy_(strategy),
        cluster_(cluster),
        entry_(entry),
        variable_(model.variable(entry.variable)),
        layer_(model.layer(variable_.layer)) {}

  void run() {
    if (entry_.shards.empty()) fail("has no shard");
    if (entry_.powersgd_rank < 1)
      fail(fmt::format("has the PowerSGD rank {}, expected at least 1", entry_.powersgd_rank));
    check_elements();
    check_axis();
    if (const char* obstacle = obstacle_to_backups(entry_); strategy_.graph.backups > 0 && obstacle != nullptr)
      fail(fmt::format("{}; backups leave the latest workers out of a step", obstacle));
    for (const auto& shard : entry_.shards) {
      std::visit([this](const auto& synchronizer) { check_synchronizer(synchronizer); }, shard.synchronizer);
    }
  }

private:
  [[noreturn]] void fail(const std::string& what) const {
    throw PlanError(fmt::format("strategy '{}': variable '{}' {}", strategy_.name, variable_.name, what));
  }

  void check_elements() const {
    std::int64_t sum = 0;
    for (const auto& shard : entry_.shards) {
      if (shard.elements < 1) fail(fmt::format("has a shard of {} elements, expected at least 1", shard.elements));
      sum += shard.elements;
    }
    if (sum != variable_.elements())
      fail(fmt::format("has {} elements and its shards have {}", variable_.elements(), sum));
  }

  void check_axis() const {
    const int axis = entry_.partition_axis;
    if ((axis == kWholeVariable) != (entry_.shards.size() == 1))
      fail(fmt::format("has {} shards and partition axis {}; one shard goes with axis -1, several with another",
                       entry_.shards.size(), axis));
    if (axis == kWholeVariable) return;
    const int axes = static_cast<int>(variable_.shape.size());
    if (axis < kFlatAxis || axis >= axes) fail(fmt::format("is split on axis {} and has {} axes", axis, axes));
    if (travels_sparse(variable_, entry_) && axis != 0)
      fail("is sparse and split on another axis than 0; only whole rows can be told apart by their index");
    if (axis == kFlatAxis) return;
    const std::int64_t entry_elements = variable_.elements() / variable_.shape[static_cast<std::size_t>(axis)];
    for (const auto& shard : entry_.shards) {
      if (shard.elements % entry_elements != 0)
        fail(fmt::format("has a shard of {} elements, which is no multiple of the {} elements of one entry of axis {}",
                         shard.elements, entry_elements, axis));
    }
  }

  void check_synchronizer(const PsSynchronizer& ps) const {
    const Place server = ps.server;
    const bool known = server.node >= 0 && server.node < cluster_.node_count() && server.gpu >= -1 &&
                       server.gpu < cluster_.group_of(server.node).gpus;
    if (!known) fail(fmt::format("is on the server '{}', which cluster '{}' lacks", name_of(server), cluster_.name));
    if (ps.staleness < 0) fail(fmt::format("has staleness {}, expected at least 0", ps.staleness));
    if (ps.staleness > 0 && !ps.sync)
      fail("has a staleness bound and sync = false; bounded staleness needs sync = true");
  }

  void check_synchronizer(const AllReduceSynchronizer& all_reduce) const {
    if (all_reduce.group < -1) fail(fmt::format("is in group {}, expected -1 or more", all_reduce.group));
  }

  void check_synchronizer(const SfbSynchronizer&) const {
    const bool dense_matrix = layer_.kind == LayerKind::Dense && variable_.shape.size() == 2 && !variable_.sparse;
    if (!dense_matrix || entry_.shards.size() > 1)
      fail("cannot be sent as sufficient factors; they exist for the whole weight matrix of a dense layer only");
  }

  void check_synchronizer(const ShardedSynchronizer&) const {
    if (entry_.shards.size() > 1) fail("is sharded over ranks and cut into shards besides");
    if (entry_.compressor != Compressor::None) fail("is sharded and compressed; choose reduce_dtype instead");
    if (travels_sparse(variable_, entry_)) fail("is sharded, so its gradient travels whole: it needs sparse_as_dense");
  }

  const Strategy& strategy_;
  const Cluster& cluster_;
  const VariableStrategy& entry_;
  const Variable& variable_;
  const Layer& layer_;
};

void check_sharding(const Strategy& strategy) {
  const Sharding& sharding = strategy.graph.sharding;
  const int replicas = strategy.graph.replicas();
  const auto fail = [&](const std::string& what) {
    throw PlanError(fmt::format("strategy '{}': {}", strategy.name, what));
  };
  if (sharding.stage < 1 || sharding.stage > 3) fail(fmt::format("sharding stage {}, expected 1 to 3", sharding.stage));
  if (sharding.whole_variables && sharding.stage != 1) fail("whole_variables needs sharding stage 1");
  const int experts = strategy.graph.parallel.experts;
  if (sharding.whole_variables && experts > 1) fail("whole_variables and expert parallelism do not go together");
  if (const int group = sharding.group_of(replicas); group % experts != 0 && experts % group != 0)
    fail(fmt::format("of shard groups of {} ranks and {} expert-parallel ranks one must divide the other", group,
                     experts));
  if (sharding.prefetch < 0 || sharding.min_unit.count < 0) fail("prefetch and min_unit must not be negative");
  if (sharding.group < 0 || replicas % sharding.group_of(replicas) != 0)
    fail(fmt::format("shard groups of {} ranks do not divide {} {}", sharding.group, replicas,
                     strategy.graph.parallel.is_trivial() ? "workers" : "replicas"));
}

/// Ranks of one replica share what they exchange with others: it is dense, and all-reduced or sharded.
void check_model_parallel(const Strategy& strategy) {
  const ModelParallel& parallel = strategy.graph.parallel;
  const auto fail = [&](const std::string& what) {
    throw PlanError(fmt::format("strategy '{}': {}", strategy.name, what));
  };
  if (parallel.tensor < 1 || parallel.pipeline < 1)
    fail(fmt::format("{} tensor-parallel ranks and {} stages, expected at least 1 of each", parallel.tensor,
                     parallel.pipeline));
  if (strategy.graph.workers % parallel.ranks() != 0)
    fail(fmt::format("replicas of {} tensor-parallel ranks x {} stages do not divide {} workers", parallel.tensor,
                     parallel.pipeline, strategy.graph.workers));
  const int replicas = strategy.graph.replicas();
  if (parallel.experts < 1 || replicas % parallel.experts != 0)
    fail(fmt::format("{} expert-parallel ranks do not divide {} replicas", parallel.experts, replicas));
  if (parallel.context < 1 || replicas % parallel.context != 0)
    fail(fmt::format("{} context-parallel ranks do not divide {} replicas", parallel.context, replicas));
  check(parallel.shape(strategy.graph.micro_steps));
  for (const Seconds cost : {parallel.host.launch, parallel.host.check, parallel.host.transfer})
    if (cost.value() < 0.0) fail("a time must not be negative");
  if (parallel.is_trivial() && !parallel.host.any()) return;
  for (const VariableStrategy& how : strategy.variables) {
    const bool whole = how.shards.size() == 1 && !std::holds_alternative<PsSynchronizer>(how.shards[0].synchronizer) &&
                       !std::holds_alternative<SfbSynchronizer>(how.shards[0].synchronizer);
    const bool encoded = how.compressor != Compressor::None && how.compressor != Compressor::Fp16;
    if (!whole || encoded)
      fail(
          "replicas of several ranks, and those that share out experts or tokens, all-reduce or shard whole gradients: "
          "no servers, cut variables, sufficient factors or encodings but fp16");
  }
}

void check_graph(const Strategy& strategy, const Cluster& cluster) {
  const GraphStrategy& graph = strategy.graph;
  const auto fail = [&](const std::string& what) {
    throw PlanError(fmt::format("strategy '{}': {}", strategy.name, what));
  };
  if (graph.workers < 1 || graph.workers > cluster.gpu_count())
    fail(
        fmt::format("{} workers on cluster '{}', which has {} GPUs", graph.workers, cluster.name, cluster.gpu_count()));
  if (graph.micro_steps < 1 || graph.micro_steps > kMostMicroSteps)
    fail(fmt::format("{} micro-steps, expected 1 to {}", graph.micro_steps, kMostMicroSteps));
  if (graph.streams_per_server < 1)
    fail(fmt::format("{} streams per server, expected at least 1", graph.streams_per_server));
  if (graph.backups < 0 || graph.backups >= graph.workers)
    fail(fmt::format("{} backups among {} workers, expected from 0 to {}", graph.backups, graph.workers,
                     graph.workers - 1));
  if (graph.backups > 0 && graph.slack) fail("backups and slack exclude each other");
  if (graph.win_bytes && graph.win_bytes->count == 0 && graph.win_next)
    fail("win_bytes 0, which shares a stream evenly, and win_next exclude each other");
  if (graph.backups > 0 && (graph.update_at == UpdateAt::Worker || !graph.pull_at_step_start))
    fail(
        "backups need servers that update (update_at: server), and workers that read at the start of a step "
        "(pull_at_step_start)");
  for (const double share : {graph.collectives_overlap.in_node, graph.collectives_overlap.between_nodes,
                             graph.servers_overlap.in_node, graph.servers_overlap.between_nodes})
    if (!(share >= 0.0 && share <= 1.0)) fail(fmt::format("an overlap of {}, expected from 0 to 1", share));
  if (graph.rpc.per_message.value() < 0.0 || (graph.rpc.rate && graph.rpc.rate->value() <= 0.0))
    fail("the costs of remote calls must not be negative");
  if (graph.scheduling.partition.count < 0 || graph.scheduling.credit.count < 0)
    fail("partition and credit must not be negative");
  const Fusion& fusion = graph.fusion;
  if (fusion.first_limit.count < 1 || fusion.limit.count < 1 || fusion.threshold.count < 1)
    fail("the limits of fusion must be at least one byte");
  if (fusion.cycle.value() < 0.0 || graph.per_operation_cost.value() < 0.0) fail("a time must not be negative");
}

}  // namespace

std::string mode_of(const Strategy& strategy) {
  if (strategy.graph.backups > 0) return "backup";
  bool bounded = false;
  for (const VariableStrategy& how : strategy.variables) {
    for (const Shard& shard : how.shards) {
      const auto* ps = std::get_if<PsSynchronizer>(&shard.synchronizer);
      if (ps == nullptr) continue;
      if (!ps->sync) return strategy.graph.slack ? "ssp" : "async";
      bounded = bounded || ps->staleness > 0;
    }
  }
  return bounded ? "ssp" : "sync";
}

bool in_lock_step(const Strategy& strategy) {
  return mode_of(strategy) == "sync";
}

bool is_sharded(const VariableStrategy& entry) {
  return std::holds_alternative<ShardedSynchronizer>(entry.shards.front().synchronizer);
}

bool has_sharded(const Strategy& strategy) {
  return std::any_of(strategy.variables.begin(), strategy.variables.end(), is_sharded);
}

double updated_by_workers(const VariableStrategy& entry, const GraphStrategy& graph) {
  std::int64_t all = 0;
  std::int64_t here = 0;
  for (const Shard& shard : entry.shards) {
    all += shard.elements;
    const bool served = std::holds_alternative<PsSynchronizer>(shard.synchronizer);
    if (!served || graph.update_at == UpdateAt::Worker) here += shard.elements;
  }
  return all > 0 ? static_cast<double>(here) / static_cast<double>(all) : 1.0;
}

bool travels_sparse(const Variable& variable, const VariableStrategy& entry) {
  return variable.sparse && !entry.sparse_as_dense;
}

void check(const Strategy& strategy, const Model& model, const Cluster& cluster) {
  check_graph(strategy, cluster);
  check_model_parallel(strategy);
  check_sharding(strategy);
  if (strategy.graph.slack && in_lock_step(strategy))
    throw PlanError(
        fmt::format("strategy '{}' bounds workers by their clocks (slack), and they are in lock step: no "
                    "variable has sync = false",
                    strategy.name));
  const std::size_t expected = model.variables().size();
  if (strategy.variables.size() != expected)
    throw PlanError(fmt::format("strategy '{}' has {} variables, model '{}' has {}", strategy.name,
                                strategy.variables.size(), model.name(), expected));
  for (std::size_t id = 0; id < expected; ++id) {
    if (strategy.variables[id].variable != id)
      throw PlanError(
          fmt::format("strategy '{}': entry {} is for variable {}; entries must be in the model's order, each once",
                      strategy.name, id, strategy.variables[id].variable));
    EntryCheck(strategy, model, cluster, strategy.variables[id]).run();
  }
}

}  // namespace simsync
