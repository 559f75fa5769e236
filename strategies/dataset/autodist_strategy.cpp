#include "strategies/dataset/autodist_strategy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "base/parse_units.hpp"
#include "strategies/partition.hpp"
#include "strategies/transport.hpp"

namespace simsync {
namespace {

const std::string kOutput = ":0";  // of the operation that a TensorFlow variable is read by

GraphStrategy autodist_graph(int workers) {
  GraphStrategy out;
  out.workers = workers;
  apply_tensorflow_servers(out);
  return out;
}

bool has_servers(const Strategy& strategy) {
  for (const VariableStrategy& entry : strategy.variables)
    for (const Shard& shard : entry.shards)
      if (std::holds_alternative<PsSynchronizer>(shard.synchronizer)) return true;
  return false;
}

/// What servers alone look at says nothing where there is none.
GraphStrategy as_autodist(const Strategy& strategy) {
  GraphStrategy out = strategy.graph;
  if (has_servers(strategy)) return out;
  const GraphStrategy plain = autodist_graph(out.workers);
  out.pull_at_step_start = plain.pull_at_step_start;
  out.shared_process = plain.shared_process;
  out.servers_overlap = plain.servers_overlap;
  out.parallel_host_ops = plain.parallel_host_ops;
  out.rpc = plain.rpc;
  return out;
}

std::string address_of(const Place& place) {
  return place.gpu < 0 ? fmt::format("node{}:CPU:0", place.node) : fmt::format("node{}:GPU:{}", place.node, place.gpu);
}

class Writer {
public:
  Writer(const Strategy& strategy, const Model& model) : strategy_(strategy), model_(model) {
    for (const VariableStrategy& entry : strategy.variables)
      for (const Shard& shard : entry.shards)
        if (const auto* all_reduce = std::get_if<AllReduceSynchronizer>(&shard.synchronizer))
          next_group_ = std::max(next_group_, all_reduce->group + 1);
  }

  Expressed write(const Cluster& cluster) {
    GraphStrategy expected = autodist_graph(strategy_.graph.workers);
    expected.serial_collectives = strategy_.graph.serial_collectives;  // TensorFlow's ring has no order
    if (as_autodist(strategy_) != expected) return {{}, "another graph level than AutoDist's"};
    StrategyMessage out;
    out.id = strategy_.name;
    for (const Place& place : cluster.workers(strategy_.graph.workers)) out.replicas.push_back(address_of(place));
    for (const VariableStrategy& entry : strategy_.variables) {
      auto node = node_of(entry);
      if (!why_not_.empty()) return {{}, why_not_};
      out.nodes.push_back(std::move(node));
    }
    return {std::move(out), {}};
  }

private:
  NodeMessage node_of(const VariableStrategy& entry) {
    const Variable& variable = model_.variable(entry.variable);
    NodeMessage out{.variable = variable.name + kOutput, .synchronizer = {}, .partitioner = {}, .parts = {}};
    if (entry.sparse_as_dense && variable.sparse) why_not_ = "a sparse gradient that travels as a whole tensor";
    const bool is_whole = entry.shards.size() == 1;
    if (is_whole) {
      out.synchronizer = synchronizer_of(entry.shards.front(), entry);
      return out;
    }
    if (entry.partition_axis < 0) why_not_ = "a variable cut by elements";
    if (!why_not_.empty()) return out;
    const auto axis = static_cast<std::size_t>(entry.partition_axis);
    std::vector<std::size_t> parts(variable.shape.size(), 1);
    parts[axis] = entry.shards.size();
    out.partitioner = fmt::format("{}", fmt::join(parts, ","));
    const auto sizes = split_axis(variable, entry.partition_axis, static_cast<std::int64_t>(entry.shards.size()));
    for (std::size_t k = 0; k < entry.shards.size(); ++k) {
      if (entry.shards[k].elements != sizes[k]) why_not_ = "a variable cut into unequal shards";
      out.parts.push_back({.variable = fmt::format("{}/part_{}{}", variable.name, k, kOutput),
                           .synchronizer = synchronizer_of(entry.shards[k], entry),
                           .partitioner = {},
                           .parts = {}});
    }
    return out;
  }

  decltype(NodeMessage::synchronizer) synchronizer_of(const Shard& shard, const VariableStrategy& entry) {
    if (const auto* ps = std::get_if<PsSynchronizer>(&shard.synchronizer)) {
      if (ps->server.gpu >= 0) why_not_ = "a server on a GPU";
      if (!ps->local_aggregation) why_not_ = "servers that get the gradients of each GPU";
      if (entry.compressor != Compressor::None) why_not_ = "encoded gradients on servers";
      return ServerMessage{.destination = address_of(ps->server),
                           .local_replication = ps->local_replication,
                           .sync = ps->sync,
                           .staleness = ps->staleness};
    }
    if (const auto* all_reduce = std::get_if<AllReduceSynchronizer>(&shard.synchronizer)) {
      AllReduceMessage out;
      out.group = all_reduce->group >= 0 ? all_reduce->group : next_group_++;
      const bool is_ring = all_reduce->algorithm == CollectiveAlgorithm::Ring;
      if (is_ring == strategy_.graph.serial_collectives) why_not_ = "an algorithm of collectives";
      if (!is_ring && all_reduce->algorithm != CollectiveAlgorithm::Auto) why_not_ = "an algorithm of collectives";
      if (is_ring) out.spec = MessageSpec::Ring;
      if (entry.compressor == Compressor::Cast32)
        out.compressor = MessageCompressor::Cast;
      else if (entry.compressor != Compressor::None)
        why_not_ = "a compressor that AutoDist has not";
      return out;
    }
    why_not_ = "sufficient factors or sharded variables";
    return std::monostate{};
  }

  const Strategy& strategy_;
  const Model& model_;
  int next_group_ = 0;
  std::string why_not_;
};

}  // namespace

Expressed to_message(const Strategy& strategy, const Model& model, const Cluster& cluster) {
  return Writer(strategy, model).write(cluster);
}

}  // namespace simsync
