// Pieces of a strategy file that both of its forms share.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include "base/error.hpp"
#include "base/parse_units.hpp"
#include "strategies/limits.hpp"
#include "strategies/names.hpp"
#include "strategies/rules.hpp"

namespace simsync {
namespace {

enum class SynchronizerKind { ParameterServer, AllReduce, SufficientFactors, Sharded };

/// node, and gpu or -1; nullopt when the text is no place.
std::optional<Place> parse_place(const std::string& text) {
  const auto colon = text.find(':');
  if (!text.starts_with("node") || colon == std::string::npos) return std::nullopt;
  const auto number_after = [](const std::string& part, const std::string& prefix) -> std::optional<int> {
    if (!part.starts_with(prefix)) return std::nullopt;
    const auto value = parse_integer(std::string_view(part).substr(prefix.size()));
    if (!value || *value < 0 || *value > std::numeric_limits<int>::max()) return std::nullopt;
    return static_cast<int>(*value);
  };
  const auto node = number_after(text.substr(0, colon), "node");
  const std::string device = text.substr(colon + 1);
  if (!node) return std::nullopt;
  if (device == "cpu0") return Place{*node, -1};
  const auto gpu = number_after(device, "gpu");
  return gpu ? std::optional{Place{*node, *gpu}} : std::nullopt;
}

std::vector<std::string> devices_of(const Cluster& cluster, int node) {
  std::vector<std::string> names{name_of(Place{node, -1})};
  for (int gpu = 0; gpu < cluster.group_of(node).gpus; ++gpu) names.push_back(name_of(Place{node, gpu}));
  return names;
}

void read_fusion(const yaml::Node& node, Fusion& fusion) {
  constexpr yaml::Range kAtLeastOne{1.0, std::numeric_limits<double>::infinity()};
  auto m = node.mapping();
  m.maybe("kind", [&](const yaml::Node& n) { fusion.kind = n.one_of(fusion_kind_words()); });
  m.maybe("first_limit", [&](const yaml::Node& n) { fusion.first_limit = n.bytes(kAtLeastOne); });
  m.maybe("limit", [&](const yaml::Node& n) { fusion.limit = n.bytes(kAtLeastOne); });
  m.maybe("threshold", [&](const yaml::Node& n) { fusion.threshold = n.bytes(kAtLeastOne); });
  m.maybe("cycle", [&](const yaml::Node& n) { fusion.cycle = n.seconds(); });
  m.maybe("copies", [&](const yaml::Node& n) { fusion.copies = n.boolean(); });
}

void read_scheduling(const yaml::Node& node, Scheduling& scheduling) {
  auto m = node.mapping();
  m.maybe("ordering", [&](const yaml::Node& n) { scheduling.ordering = n.one_of(ordering_words()); });
  m.maybe("partition", [&](const yaml::Node& n) { scheduling.partition = n.bytes(); });
  m.maybe("credit", [&](const yaml::Node& n) { scheduling.credit = n.bytes(); });
  m.maybe("credit_is_strict", [&](const yaml::Node& n) { scheduling.credit_is_strict = n.boolean(); });
  m.maybe("pulls_only", [&](const yaml::Node& n) { scheduling.pulls_only = n.boolean(); });
}

void read_sharding(const yaml::Node& node, Sharding& sharding) {
  constexpr int kMost = std::numeric_limits<int>::max();
  auto m = node.mapping();
  m.maybe("stage", [&](const yaml::Node& n) { sharding.stage = static_cast<int>(n.integer(1, 3)); });
  m.maybe("group", [&](const yaml::Node& n) { sharding.group = static_cast<int>(n.integer(0, kMost)); });
  m.maybe("reshard_after_forward", [&](const yaml::Node& n) { sharding.reshard_after_forward = n.boolean(); });
  m.maybe("prefetch", [&](const yaml::Node& n) { sharding.prefetch = static_cast<int>(n.integer(0, kMost)); });
  m.maybe("reduce_every_micro_step", [&](const yaml::Node& n) { sharding.reduce_every_micro_step = n.boolean(); });
  m.maybe("overlap_gather", [&](const yaml::Node& n) { sharding.overlap_gather = n.boolean(); });
  m.maybe("whole_variables", [&](const yaml::Node& n) { sharding.whole_variables = n.boolean(); });
  m.maybe("min_unit", [&](const yaml::Node& n) { sharding.min_unit = n.bytes(); });
  m.maybe("param_dtype", [&](const yaml::Node& n) { sharding.param_dtype = n.one_of(dtype_words()); });
  m.maybe("reduce_dtype", [&](const yaml::Node& n) { sharding.reduce_dtype = n.one_of(dtype_words()); });
}

PsSynchronizer read_ps(yaml::Mapping& mapping) {
  PsSynchronizer ps;
  mapping.maybe("local_replication", [&](const yaml::Node& n) { ps.local_replication = n.boolean(); });
  mapping.maybe("local_aggregation", [&](const yaml::Node& n) { ps.local_aggregation = n.boolean(); });
  mapping.maybe("sync", [&](const yaml::Node& n) { ps.sync = n.boolean(); });
  mapping.maybe("staleness", [&](const yaml::Node& n) {
    ps.staleness = static_cast<int>(n.integer(0, kMostStaleness));
    if (ps.staleness > 0 && !ps.sync) n.fail("a bound on staleness needs sync: true");
  });
  return ps;
}

}  // namespace

std::optional<Place> read_place(const yaml::Node& node, const Cluster& cluster) {
  const std::string text = node.text();
  if (text.empty()) return std::nullopt;
  const auto place = parse_place(text);
  if (!place) {
    node.fail(fmt::format("expected a place such as node0:cpu0 or node1:gpu2, got '{}'", text));
    return std::nullopt;
  }
  if (place->node >= cluster.node_count()) {
    node.fail(fmt::format("unknown node of '{}'", text), {},
              fmt::format("cluster '{}' has the nodes node0 ... node{}", cluster.name, cluster.node_count() - 1));
    return std::nullopt;
  }
  if (place->gpu < cluster.group_of(place->node).gpus) return place;
  const auto devices = devices_of(cluster, place->node);
  node.fail(fmt::format("unknown device '{}'", text), did_you_mean(text, devices),
            fmt::format("cluster '{}' has {}", cluster.name, fmt::join(devices, ", ")));
  return std::nullopt;
}

Synchronizer read_synchronizer(yaml::Mapping& mapping) {
  const auto kind = mapping.require("synchronizer")
                        .one_of<SynchronizerKind>({{"parameter-server", SynchronizerKind::ParameterServer},
                                                   {"all-reduce", SynchronizerKind::AllReduce},
                                                   {"sufficient-factors", SynchronizerKind::SufficientFactors},
                                                   {"sharded", SynchronizerKind::Sharded}});
  if (kind == SynchronizerKind::ParameterServer) return read_ps(mapping);
  if (kind == SynchronizerKind::SufficientFactors) return SfbSynchronizer{};
  if (kind == SynchronizerKind::Sharded) return ShardedSynchronizer{};
  AllReduceSynchronizer all_reduce;
  mapping.maybe("algorithm",
                [&](const yaml::Node& n) { all_reduce.algorithm = n.one_of(collective_algorithm_words()); });
  return all_reduce;
}

void read_encoding(yaml::Mapping& mapping, VariableStrategy& entry) {
  mapping.maybe("compressor", [&](const yaml::Node& n) { entry.compressor = n.one_of(compressor_words()); });
  mapping.maybe("powersgd_rank", [&](const yaml::Node& n) {
    entry.powersgd_rank = static_cast<int>(n.integer(1, std::numeric_limits<int>::max()));
  });
  mapping.maybe("sparse_as_dense", [&](const yaml::Node& n) { entry.sparse_as_dense = n.boolean(); });
}

void read_shares(const yaml::Node& node, OverlapShares& shares) {
  auto m = node.mapping();
  m.maybe("in_node", [&](const yaml::Node& n) { shares.in_node = n.number(yaml::kFraction); });
  m.maybe("between_nodes", [&](const yaml::Node& n) { shares.between_nodes = n.number(yaml::kFraction); });
}

void read_rpc(const yaml::Node& node, RpcCosts& rpc) {
  auto m = node.mapping();
  m.maybe("per_message", [&](const yaml::Node& n) { rpc.per_message = n.seconds(); });
  m.maybe("rate", [&](const yaml::Node& n) { rpc.rate = n.bandwidth(); });
}

void read_parallel(const yaml::Node& node, ModelParallel& parallel) {
  constexpr std::int64_t kMostRanks = 1'000'000;
  auto m = node.mapping();
  m.maybe("tensor", [&](const yaml::Node& n) { parallel.tensor = static_cast<int>(n.integer(1, kMostRanks)); });
  m.maybe("pipeline", [&](const yaml::Node& n) { parallel.pipeline = static_cast<int>(n.integer(1, kMostRanks)); });
  m.maybe("experts", [&](const yaml::Node& n) { parallel.experts = static_cast<int>(n.integer(1, kMostRanks)); });
  m.maybe("context", [&](const yaml::Node& n) { parallel.context = static_cast<int>(n.integer(1, kMostRanks)); });
  m.maybe("schedule", [&](const yaml::Node& n) { parallel.schedule = n.one_of(pipeline_schedule_words()); });
  m.maybe("chunks", [&](const yaml::Node& n) { parallel.chunks = static_cast<int>(n.integer(1, kMostRanks)); });
  m.maybe("sequence", [&](const yaml::Node& n) { parallel.sequence = n.boolean(); });
  m.maybe("tensor_overlap", [&](const yaml::Node& n) { parallel.tensor_overlap = n.boolean(); });
  m.maybe("context_balanced", [&](const yaml::Node& n) { parallel.context_balanced = n.boolean(); });
  m.maybe("context_overlap", [&](const yaml::Node& n) { parallel.context_overlap = n.boolean(); });
  m.maybe("splits", [&](const yaml::Node& n) {
    try {
      parallel.splits = parse_split_choices(n.text());
    } catch (const InputError& e) {
      n.fail(e.what());
    }
  });
  m.maybe("stage_blocks", [&](const yaml::Node& n) { parallel.blocks = n.one_of(stage_blocks_words()); });
  m.maybe("launch_cost", [&](const yaml::Node& n) { parallel.host.launch = n.seconds(); });
  m.maybe("check_cost", [&](const yaml::Node& n) { parallel.host.check = n.seconds(); });
  m.maybe("transfer_cost", [&](const yaml::Node& n) { parallel.host.transfer = n.seconds(); });
  m.maybe("host_waits", [&](const yaml::Node& n) { parallel.host.waits = n.boolean(); });
}

void read_graph(const yaml::Node& node, GraphStrategy& graph) {
  constexpr std::int64_t kMostStreams = 1024;
  auto m = node.mapping();
  m.maybe("overlap", [&](const yaml::Node& n) { graph.overlap = n.one_of(overlap_words()); });
  m.maybe("micro_steps",
          [&](const yaml::Node& n) { graph.micro_steps = static_cast<int>(n.integer(1, kMostMicroSteps)); });
  m.maybe("recompute", [&](const yaml::Node& n) { graph.recompute = n.one_of(recompute_words()); });
  m.maybe("collectives_overlap", [&](const yaml::Node& n) { read_shares(n, graph.collectives_overlap); });
  m.maybe("servers_overlap", [&](const yaml::Node& n) { read_shares(n, graph.servers_overlap); });
  m.maybe("parallel_host_ops", [&](const yaml::Node& n) { graph.parallel_host_ops = n.boolean(); });
  m.maybe("rpc", [&](const yaml::Node& n) { read_rpc(n, graph.rpc); });
  m.maybe("gate", [&](const yaml::Node& n) { graph.gate = n.one_of(gate_words()); });
  m.maybe("update_at", [&](const yaml::Node& n) { graph.update_at = n.one_of(update_at_words()); });
  m.maybe("fusion", [&](const yaml::Node& n) { read_fusion(n, graph.fusion); });
  m.maybe("scheduling", [&](const yaml::Node& n) { read_scheduling(n, graph.scheduling); });
  m.maybe("parallel", [&](const yaml::Node& n) { read_parallel(n, graph.parallel); });
  m.maybe("sharding", [&](const yaml::Node& n) { read_sharding(n, graph.sharding); });
  m.maybe("algorithm", [&](const yaml::Node& n) { graph.algorithm = n.one_of(collective_algorithm_words()); });
  m.maybe("pull_at_step_start", [&](const yaml::Node& n) { graph.pull_at_step_start = n.boolean(); });
  m.maybe("aggregate_on_gpu", [&](const yaml::Node& n) { graph.aggregate_on_gpu = n.boolean(); });
  m.maybe("serial_collectives", [&](const yaml::Node& n) { graph.serial_collectives = n.boolean(); });
  m.maybe("per_operation_cost", [&](const yaml::Node& n) { graph.per_operation_cost = n.seconds(); });
  m.maybe("streams_per_server",
          [&](const yaml::Node& n) { graph.streams_per_server = static_cast<int>(n.integer(1, kMostStreams)); });
  m.maybe("win_bytes", [&](const yaml::Node& n) { graph.win_bytes = n.bytes(); });
  m.maybe("win_next", [&](const yaml::Node& n) { graph.win_next = n.bytes(); });
  m.maybe("slack",
          [&](const yaml::Node& n) { graph.slack = static_cast<int>(n.integer(0, std::numeric_limits<int>::max())); });
  m.maybe("backups", [&](const yaml::Node& n) {
    graph.backups = static_cast<int>(n.integer(0, std::numeric_limits<int>::max()));
  });
  m.maybe("random_pull_order", [&](const yaml::Node& n) { graph.random_pull_order = n.boolean(); });
  m.maybe("shared_process", [&](const yaml::Node& n) { graph.shared_process = n.boolean(); });
}

}  // namespace simsync
