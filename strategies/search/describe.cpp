#include "strategies/search/describe.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/parse_units.hpp"
#include "strategies/names.hpp"
#include "strategies/search/sampler.hpp"

namespace simsync {
namespace {

/// What variables have in common that stand in one line. Shards of one variable may differ.
struct Handling {
  bool served = false;
  bool reduced = false;
  bool factors = false;
  bool sharded = false;
  bool replicated = false;
  bool cut = false;
  Compressor compressor = Compressor::None;
  friend auto operator<=>(const Handling&, const Handling&) = default;
};

/// The variables of one handling.
struct Handled {
  std::size_t count = 0;
  double bytes = 0.0;
  std::map<std::string, double> kinds;  ///< bytes by kind of layer
  std::set<Place> servers;
  std::set<int> groups;
  std::size_t fewest_shards = SIZE_MAX;
  std::size_t most_shards = 0;
};

Handling handling_of(const VariableStrategy& entry) {
  Handling out{.cut = entry.shards.size() > 1, .compressor = entry.compressor};
  for (const Shard& shard : entry.shards) {
    if (const auto* ps = std::get_if<PsSynchronizer>(&shard.synchronizer)) {
      out.served = true;
      out.replicated = out.replicated || ps->local_replication;
    }
    out.reduced = out.reduced || std::holds_alternative<AllReduceSynchronizer>(shard.synchronizer);
    out.factors = out.factors || std::holds_alternative<SfbSynchronizer>(shard.synchronizer);
    out.sharded = out.sharded || std::holds_alternative<ShardedSynchronizer>(shard.synchronizer);
  }
  return out;
}

void add(Handled& handled, const VariableStrategy& entry, const Model& model) {
  const Variable& variable = model.variable(entry.variable);
  const auto bytes = static_cast<double>(variable.bytes().count);
  ++handled.count;
  handled.bytes += bytes;
  handled.kinds[name_of(model.layer(variable.layer).kind)] += bytes;
  handled.fewest_shards = std::min(handled.fewest_shards, entry.shards.size());
  handled.most_shards = std::max(handled.most_shards, entry.shards.size());
  for (const Shard& shard : entry.shards) {
    if (const auto* ps = std::get_if<PsSynchronizer>(&shard.synchronizer)) handled.servers.insert(ps->server);
    if (const auto* reduced = std::get_if<AllReduceSynchronizer>(&shard.synchronizer); reduced && reduced->group >= 0)
      handled.groups.insert(reduced->group);
  }
}

std::string plural(std::size_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string text_of(const Handling& handling, const Handled& handled, const GraphStrategy& graph) {
  std::vector<std::string> parts;
  if (handling.served)
    parts.push_back(fmt::format("on {}{}", plural(handled.servers.size(), "server"),
                                handling.replicated ? ", with copies on hosts" : ""));
  if (handling.reduced) {
    const bool grouped = graph.fusion.kind == FusionKind::Groups && !handled.groups.empty();
    parts.push_back(grouped ? fmt::format("all-reduced in {}", plural(handled.groups.size(), "group")) : "all-reduced");
  }
  if (handling.factors) parts.emplace_back("sent as sufficient factors");
  if (handling.sharded) parts.emplace_back("shared out among ranks");
  std::string out = fmt::format("{}", fmt::join(parts, " and "));
  if (handling.cut)
    out += handled.fewest_shards == handled.most_shards
               ? fmt::format(", cut into {}", plural(handled.most_shards, "shard"))
               : fmt::format(", cut into {} to {} shards", handled.fewest_shards, handled.most_shards);
  if (handling.compressor != Compressor::None) out += fmt::format(", as {}", name_of(handling.compressor));
  return out;
}

/// Kinds of layers that have a tenth of the bytes, most first.
std::string kinds_of(const Handled& handled) {
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [kind, bytes] : handled.kinds)
    if (bytes >= 0.1 * handled.bytes) order.emplace_back(-bytes, kind);
  std::sort(order.begin(), order.end());
  std::vector<std::string> names;
  for (const auto& [bytes, kind] : order) names.push_back(kind);
  return fmt::format("{}", fmt::join(names, " and "));
}

std::string size_text(Bytes bytes) {
  return format_bytes(static_cast<double>(bytes.count));
}

std::string fusion_text(const Fusion& fusion) {
  switch (fusion.kind) {
    case FusionKind::Buckets:
      return fmt::format("gradients fused in buckets of {}", size_text(fusion.limit));
    case FusionKind::Cycle:
      return fmt::format("gradients fused every {} up to {}", format_seconds(fusion.cycle),
                         size_text(fusion.threshold));
    case FusionKind::MergedGradient:
      return "gradients merged while that saves time";
    case FusionKind::Single:
      return "all gradients in one message";
    case FusionKind::None:
      return "gradients not fused";
    case FusionKind::Groups:
      return "gradients fused by group";
  }
  return {};
}

std::string graph_text(const Strategy& strategy) {
  const GraphStrategy& graph = strategy.graph;
  std::vector<std::string> parts;
  switch (schedule_of(strategy)) {
    case Schedule::ReadAtStart:
      parts.emplace_back("variables read at the start of a step");
      break;
    case Schedule::WaitFree:
      parts.emplace_back("the next step waits for all variables");
      break;
    case Schedule::Priority:
      parts.push_back(fmt::format(
          "urgent layers first, pieces of {}, {} in flight",
          graph.scheduling.partition.count > 0 ? "at most " + size_text(graph.scheduling.partition) : "any size",
          graph.scheduling.credit.count == 0   ? "any number"
          : graph.scheduling.credit.count == 1 ? "one"
                                               : size_text(graph.scheduling.credit)));
      break;
    case Schedule::Sharded:
      parts.push_back(fmt::format(
          "ZeRO stage {}{}", graph.sharding.stage,
          graph.sharding.group > 0 ? fmt::format(" in groups of {} ranks", graph.sharding.group) : std::string{}));
      break;
  }
  const bool reduces = std::any_of(strategy.variables.begin(), strategy.variables.end(),
                                   [](const VariableStrategy& entry) { return handling_of(entry).reduced; });
  if (reduces) parts.push_back(fusion_text(graph.fusion));
  if (reduces && graph.algorithm != CollectiveAlgorithm::Auto)
    parts.push_back(fmt::format("algorithm {}", name_of(graph.algorithm)));
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace

std::vector<std::string> describe(const Strategy& strategy, const Model& model) {
  std::map<Handling, Handled> all;
  double bytes = 0.0;
  for (const VariableStrategy& entry : strategy.variables) {
    add(all[handling_of(entry)], entry, model);
    bytes += static_cast<double>(model.variable(entry.variable).bytes().count);
  }
  std::vector<std::pair<double, std::string>> lines;
  for (const auto& [handling, handled] : all)
    lines.emplace_back(
        -handled.bytes,
        fmt::format("{} ({}, {:.0f} % of the bytes): {}", plural(handled.count, "variable"), kinds_of(handled),
                    bytes > 0.0 ? 100.0 * handled.bytes / bytes : 0.0, text_of(handling, handled, strategy.graph)));
  std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> out;
  for (const auto& [size, line] : lines) out.push_back(line);
  out.push_back(graph_text(strategy));
  return out;
}

namespace {

/// What the gradients of all-reduced variables are encoded by, if they agree. A sparse gradient does not go into a
/// bucket, and is not encoded.
std::optional<Compressor> common_compressor(const Strategy& strategy, const Model& model) {
  std::set<Compressor> out;
  for (const VariableStrategy& entry : strategy.variables)
    if (!model.variable(entry.variable).sparse || entry.sparse_as_dense) out.insert(entry.compressor);
  if (out.size() > 1) return std::nullopt;
  return out.empty() ? Compressor::None : *out.begin();
}

std::vector<std::string> bucket_settings(const Strategy& strategy, Compressor compressor) {
  constexpr double kMebi = 1024.0 * 1024.0;
  std::string line = fmt::format("torch DistributedDataParallel: bucket_cap_mb={:g}",
                                 static_cast<double>(strategy.graph.fusion.limit.count) / kMebi);
  if (compressor == Compressor::Fp16) line += ", register_comm_hook(fp16_compress_hook)";
  if (compressor == Compressor::PowerSgd)
    line += fmt::format(", register_comm_hook(powerSGD_hook) with matrix_approximation_rank={}",
                        strategy.variables.front().powersgd_rank);
  return {line};
}

std::vector<std::string> cycle_settings(const Fusion& fusion, Compressor compressor) {
  if (compressor == Compressor::PowerSgd) return {};
  return {fmt::format("Horovod: HOROVOD_FUSION_THRESHOLD={} HOROVOD_CYCLE_TIME={:g}{}", fusion.threshold.count,
                      1e3 * fusion.cycle.value(),
                      compressor == Compressor::Fp16 ? ", compression=hvd.Compression.fp16" : "")};
}

/// Bytes of a parameter, if it is the same for all variables.
std::optional<std::int64_t> bytes_of_parameter(const Strategy& strategy, const Model& model) {
  std::set<std::int64_t> out;
  for (const VariableStrategy& entry : strategy.variables) out.insert(size_of(model.variable(entry.variable).dtype));
  return out.size() == 1 ? std::optional(*out.begin()) : std::nullopt;
}

/// The longest shard of all.
std::int64_t longest_shard(const Strategy& strategy, const Model& model) {
  std::int64_t out = 0;
  for (const VariableStrategy& entry : strategy.variables)
    for (const Shard& shard : entry.shards)
      out = std::max(out, shard.elements * size_of(model.variable(entry.variable).dtype));
  return out;
}

/// ByteScheduler counts in parameters (`_partition` and `_credit` of its bytecore.py). A piece starts there while any
/// credit is left, so that a credit of one parameter is one piece at a time. Its tuner would change the credit.
/// `piece`: bytes of a partition.
std::vector<std::string> bytescheduler_settings(const char* back_end, const Strategy& strategy, const Model& model,
                                                std::int64_t piece) {
  const Scheduling& scheduling = strategy.graph.scheduling;
  const auto element = bytes_of_parameter(strategy, model);
  if (!element || piece == 0 || scheduling.credit.count == 0 || scheduling.credit_is_strict) return {};
  const auto parameters = [&](std::int64_t bytes) { return std::max<std::int64_t>(1, bytes / *element); };
  return {
      fmt::format("ByteScheduler with {}: USE_BYTESCHEDULER=1 BYTESCHEDULER_PARTITION={} BYTESCHEDULER_CREDIT={} "
                  "BYTESCHEDULER_CREDIT_TUNING=0",
                  back_end, parameters(piece), parameters(scheduling.credit.count))};
}

std::vector<std::string> scheduled_settings(const Strategy& strategy, const Model& model) {
  if (strategy.graph.fusion.kind != FusionKind::None) return {};
  return bytescheduler_settings("Horovod", strategy, model, strategy.graph.scheduling.partition.count);
}

/// BytePS counts its credit in partitions (`_credits` of its scheduled_queue.cc), and a partition longer than what is
/// left waits; its workers update.
std::vector<std::string> byteps_settings(const Strategy& strategy, const Model& model) {
  const std::int64_t piece = longest_shard(strategy, model);
  if (strategy.graph.update_at != UpdateAt::Worker || piece == 0) return {};
  std::string line = fmt::format("BytePS, with a placement of its own: BYTEPS_PARTITION_BYTES={}", piece);
  if (const std::int64_t credit = strategy.graph.scheduling.credit.count; credit > 0)
    line += fmt::format(" BYTEPS_SCHEDULING_CREDIT={}", std::max<std::int64_t>(1, (credit + piece / 2) / piece));
  return {line};
}

/// Servers behind a priority queue: BytePS deals partitions to them by itself, and so does ByteScheduler.
std::vector<std::string> served_settings(const Strategy& strategy, const Model& model) {
  const Scheduling& scheduling = strategy.graph.scheduling;
  if (scheduling.credit_is_strict || scheduling.credit.count == 0) return byteps_settings(strategy, model);
  return bytescheduler_settings("MXNet's servers, with a placement of its own", strategy, model,
                                longest_shard(strategy, model));
}

}  // namespace

std::vector<std::string> framework_settings(const Strategy& strategy, const Model& model) {
  const GraphStrategy& graph = strategy.graph;
  const auto all = [&](auto holds) {
    return std::all_of(strategy.variables.begin(), strategy.variables.end(),
                       [&](const VariableStrategy& entry) { return holds(handling_of(entry)); });
  };
  const Schedule schedule = schedule_of(strategy);
  const auto compressor = common_compressor(strategy, model);
  if (!compressor) return {};
  if (schedule == Schedule::Priority && *compressor == Compressor::None &&
      all([](const Handling& h) { return h.served && h.replicated && !h.reduced && !h.factors; }))
    return served_settings(strategy, model);
  if (!all([](const Handling& h) { return h.reduced && !h.served && !h.cut; })) return {};
  std::vector<std::string> out;
  if (schedule == Schedule::Priority && *compressor == Compressor::None) out = scheduled_settings(strategy, model);
  if (schedule == Schedule::WaitFree && graph.fusion.kind == FusionKind::Buckets)
    out = bucket_settings(strategy, *compressor);
  if (schedule == Schedule::WaitFree && graph.fusion.kind == FusionKind::Cycle)
    out = cycle_settings(graph.fusion, *compressor);
  if (out.empty()) return out;
  if (graph.algorithm == CollectiveAlgorithm::Ring) out.emplace_back("NCCL: NCCL_ALGO=Ring");
  if (graph.algorithm == CollectiveAlgorithm::DoubleBinaryTree) out.emplace_back("NCCL: NCCL_ALGO=Tree");
  return out;
}

}  // namespace simsync
