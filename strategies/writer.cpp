// The explicit form of a strategy file. Keys with their default value are left out below `nodes`.
#include <fmt/format.h>

#include <algorithm>

#include "base/parse_units.hpp"
#include "strategies/names.hpp"
#include "strategies/reader.hpp"

namespace simsync {
namespace {

/// As it stands when YAML reads it as plain text in any place, else in double quotes.
std::string quoted(const std::string& text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '/' ||
           c == '.' || c == '-';
  };
  const bool plain =
      !text.empty() && std::all_of(text.begin(), text.end(), is_plain) && text.front() != '-' && text.front() != '.';
  if (plain) return text;
  std::string out = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += '\\';
    if (code < ' ') {
      out += fmt::format("\\x{:02x}", code);
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string text_of(Seconds time) {
  return format_shortest(time.value()) + "s";
}
std::string text_of(Bytes bytes) {
  return fmt::format("{}B", bytes.count);
}

/// Nothing for the default.
std::string shares_text(const char* key, const OverlapShares& shares) {
  if (shares == OverlapShares{}) return {};
  return fmt::format("  {}: {{in_node: {}, between_nodes: {}}}\n", key, format_shortest(shares.in_node),
                     format_shortest(shares.between_nodes));
}

std::string rpc_text(const RpcCosts& rpc) {
  if (rpc == RpcCosts{}) return {};
  const std::string rate = rpc.rate ? ", rate: " + format_shortest(rpc.rate->value()) + "B/s" : "";
  return fmt::format("  rpc: {{per_message: {}{}}}\n", text_of(rpc.per_message), rate);
}

std::string sharding_text(const Sharding& sharding) {
  if (sharding == Sharding{}) return {};
  std::string out = fmt::format(
      "  sharding: {{stage: {}, group: {}, reshard_after_forward: {}, prefetch: {}, overlap_gather: {}, min_unit: {}",
      sharding.stage, sharding.group, sharding.reshard_after_forward, sharding.prefetch, sharding.overlap_gather,
      text_of(sharding.min_unit));
  if (sharding.whole_variables) out += ", whole_variables: true";
  if (!sharding.reduce_every_micro_step) out += ", reduce_every_micro_step: false";
  if (sharding.param_dtype) out += fmt::format(", param_dtype: {}", name_of(*sharding.param_dtype));
  if (sharding.reduce_dtype) out += fmt::format(", reduce_dtype: {}", name_of(*sharding.reduce_dtype));
  return out + "}\n";
}

std::string parallel_text(const ModelParallel& parallel) {
  if (parallel == ModelParallel{}) return {};
  std::string out =
      fmt::format("  parallel: {{tensor: {}, pipeline: {}, schedule: {}, chunks: {}, sequence: {}", parallel.tensor,
                  parallel.pipeline, name_of(parallel.schedule), parallel.chunks, parallel.sequence);
  if (parallel.experts > 1) out += fmt::format(", experts: {}", parallel.experts);
  if (parallel.context > 1) out += fmt::format(", context: {}", parallel.context);
  if (parallel.tensor_overlap) out += ", tensor_overlap: true";
  if (!parallel.context_balanced) out += ", context_balanced: false";
  if (parallel.context_overlap) out += ", context_overlap: true";
  if (!parallel.splits.empty()) out += fmt::format(", splits: \"{}\"", text_of(parallel.splits));
  if (parallel.blocks != StageBlocks::Even) out += fmt::format(", stage_blocks: {}", name_of(parallel.blocks));
  const auto time = [&](const char* key, Seconds value) {
    if (value.value() > 0.0) out += fmt::format(", {}: {}", key, text_of(value));
  };
  time("launch_cost", parallel.host.launch);
  time("check_cost", parallel.host.check);
  time("transfer_cost", parallel.host.transfer);
  if (parallel.host.waits) out += ", host_waits: true";
  return out + "}\n";
}

std::string graph_text(const GraphStrategy& graph) {
  const Fusion& fusion = graph.fusion;
  const Scheduling& scheduling = graph.scheduling;
  std::string out = "graph:\n";
  out += fmt::format("  overlap: {}\n  gate: {}\n  update_at: {}\n", name_of(graph.overlap), name_of(graph.gate),
                     name_of(graph.update_at));
  out += fmt::format("  fusion: {{kind: {}, first_limit: {}, limit: {}, threshold: {}, cycle: {}, copies: {}}}\n",
                     name_of(fusion.kind), text_of(fusion.first_limit), text_of(fusion.limit),
                     text_of(fusion.threshold), text_of(fusion.cycle), fusion.copies);
  out += fmt::format(
      "  scheduling: {{ordering: {}, partition: {}, credit: {}, credit_is_strict: {}, "
      "pulls_only: {}}}\n",
      name_of(scheduling.ordering), text_of(scheduling.partition), text_of(scheduling.credit),
      scheduling.credit_is_strict, scheduling.pulls_only);
  out +=
      fmt::format("  algorithm: {}\n  pull_at_step_start: {}\n  aggregate_on_gpu: {}\n  serial_collectives: {}\n",
                  name_of(graph.algorithm), graph.pull_at_step_start, graph.aggregate_on_gpu, graph.serial_collectives);
  out += fmt::format("  per_operation_cost: {}\n  streams_per_server: {}\n  shared_process: {}\n",
                     text_of(graph.per_operation_cost), graph.streams_per_server, graph.shared_process);
  if (graph.micro_steps > 1) out += fmt::format("  micro_steps: {}\n", graph.micro_steps);
  if (graph.recompute != Recompute::None) out += fmt::format("  recompute: {}\n", name_of(graph.recompute));
  out += shares_text("collectives_overlap", graph.collectives_overlap);
  out += shares_text("servers_overlap", graph.servers_overlap);
  if (graph.parallel_host_ops) out += "  parallel_host_ops: true\n";
  out += rpc_text(graph.rpc);
  if (graph.win_bytes) out += fmt::format("  win_bytes: {}\n", text_of(*graph.win_bytes));
  if (graph.win_next) out += fmt::format("  win_next: {}\n", text_of(*graph.win_next));
  if (graph.slack) out += fmt::format("  slack: {}\n", *graph.slack);
  if (graph.backups > 0) out += fmt::format("  backups: {}\n", graph.backups);
  out += parallel_text(graph.parallel);
  out += sharding_text(graph.sharding);
  if (graph.random_pull_order) out += "  random_pull_order: true\n";
  return out;
}

std::string synchronizer_text(const PsSynchronizer& ps) {
  const PsSynchronizer fallback;
  std::string out = fmt::format("synchronizer: parameter-server, server: {}", name_of(ps.server));
  if (ps.local_replication != fallback.local_replication)
    out += fmt::format(", local_replication: {}", ps.local_replication);
  if (ps.local_aggregation != fallback.local_aggregation)
    out += fmt::format(", local_aggregation: {}", ps.local_aggregation);
  if (ps.sync != fallback.sync) out += fmt::format(", sync: {}", ps.sync);
  if (ps.staleness != fallback.staleness) out += fmt::format(", staleness: {}", ps.staleness);
  return out;
}

std::string synchronizer_text(const AllReduceSynchronizer& all_reduce) {
  std::string out = "synchronizer: all-reduce";
  if (all_reduce.algorithm != CollectiveAlgorithm::Auto)
    out += fmt::format(", algorithm: {}", name_of(all_reduce.algorithm));
  if (all_reduce.group >= 0) out += fmt::format(", group: {}", all_reduce.group);
  return out;
}

std::string synchronizer_text(const SfbSynchronizer&) {
  return "synchronizer: sufficient-factors";
}

std::string synchronizer_text(const ShardedSynchronizer&) {
  return "synchronizer: sharded";
}

std::string entry_text(const VariableStrategy& entry, const Variable& variable) {
  const VariableStrategy fallback;
  std::string out = fmt::format("  - variable: {}\n", quoted(variable.name));
  if (entry.partition_axis == kFlatAxis) out += "    axis: flat\n";
  if (entry.partition_axis >= 0) out += fmt::format("    axis: {}\n", entry.partition_axis);
  if (entry.compressor != fallback.compressor) out += fmt::format("    compressor: {}\n", name_of(entry.compressor));
  if (entry.powersgd_rank != fallback.powersgd_rank) out += fmt::format("    powersgd_rank: {}\n", entry.powersgd_rank);
  if (entry.priority != fallback.priority) out += fmt::format("    priority: {}\n", entry.priority);
  if (entry.sparse_as_dense) out += "    sparse_as_dense: true\n";
  out += "    shards:\n";
  for (const auto& shard : entry.shards) {
    const std::string synchronizer = std::visit([](const auto& s) { return synchronizer_text(s); }, shard.synchronizer);
    out += fmt::format("      - {{elements: {}, {}}}\n", shard.elements, synchronizer);
  }
  return out;
}

}  // namespace

std::string to_yaml(const Strategy& strategy, const Model& model) {
  std::string out =
      fmt::format("schema: simsync/strategy/v1\nname: {}\nmodel: {}\nworkers: {}\n\n{}\nnodes:", quoted(strategy.name),
                  quoted(model.name()), strategy.graph.workers, graph_text(strategy.graph));
  out += strategy.variables.empty() ? " []\n" : "\n";
  for (const auto& entry : strategy.variables) out += entry_text(entry, model.variable(entry.variable));
  return out;
}

}  // namespace simsync
