#include "strategies/search/features.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "base/error.hpp"
#include "strategies/wire_bytes.hpp"

namespace simsync {
namespace {

/// Of one server or one fusion group.
struct Costs {
  double transmission = 0.0;
  double overhead = 0.0;
  double latency = 0.0;
};

/// Largest and sum of each, in the order of the schema.
void append(const std::map<int, Costs>& costs, std::vector<double>& out) {
  for (double Costs::*kind : {&Costs::transmission, &Costs::overhead, &Costs::latency}) {
    double largest = 0.0;
    double sum = 0.0;
    for (const auto& [index, cost] : costs) {
      largest = std::max(largest, cost.*kind);
      sum += cost.*kind;
    }
    out.push_back(largest);
    out.push_back(sum);
  }
}

class AutoSyncCosts {
public:
  AutoSyncCosts(const SearchTarget& target, std::int64_t samples) : target_(target), samples_(samples) {
    for (const Place& worker : target.cluster.workers(target.workers)) ++replicas_[worker.node];
    const bool has_network = target.cluster.node_count() > 1;
    for (const Place& host : hosts_of(target.cluster, target.workers).all())
      rate_[host.node] = has_network ? nic_bandwidths(target.cluster, {host}).front() : kInside;
    for (const auto& [node, count] : replicas_) {
      slowest_ = std::min(slowest_, rate_[node]);
      most_replicas_ = std::max(most_replicas_, static_cast<double>(count));
    }
  }

  void add(const VariableStrategy& entry, const Shard& shard) {
    const Variable& variable = target_.model.variable(entry.variable);
    const double bytes = wire_bytes(variable, entry, shard.elements, {.samples = samples_});
    if (const auto* ps = std::get_if<PsSynchronizer>(&shard.synchronizer)) {
      add_served(*ps, variable.sparse && !entry.sparse_as_dense, bytes);
      return;
    }
    const auto* reduced = std::get_if<AllReduceSynchronizer>(&shard.synchronizer);
    // What has no group travels alone.
    const int group = reduced != nullptr && reduced->group >= 0 ? reduced->group : --alone_;
    Costs& costs = groups_[group];
    costs.transmission += bytes / slowest_;
    costs.overhead = 1.0;
    costs.latency = most_replicas_;
  }

  [[nodiscard]] std::vector<double> features() const {
    std::vector<double> out;
    append(servers_, out);
    append(groups_, out);
    return out;
  }

private:
  static constexpr double kInside = 125e9;  ///< B/s inside a host: AutoSync's 1,000 Gbit/s

  void add_served(const PsSynchronizer& ps, bool is_sparse, double bytes) {
    Costs& costs = servers_[ps.server.node];
    const double own = rate_.contains(ps.server.node) ? rate_.at(ps.server.node) : slowest_;
    for (const auto& [node, count] : replicas_) {
      if (node == ps.server.node) continue;
      const double once = bytes / std::min(own, rate_.at(node));
      const double sent = is_sparse ? count : 1.0;
      const double received = ps.local_replication && !is_sparse ? 1.0 : count;
      costs.transmission += (sent + received) * once;
      costs.overhead += received;
    }
    costs.latency += most_replicas_;
  }

  const SearchTarget& target_;
  std::int64_t samples_;
  std::map<int, int> replicas_;  ///< by node
  std::map<int, double> rate_;   ///< by node: of its NIC
  double slowest_ = kInside;
  double most_replicas_ = 1.0;
  std::map<int, Costs> servers_;
  std::map<int, Costs> groups_;
  int alone_ = 0;
};

/// What there is of a strategy, by kind of synchronizer and by place.
struct Tally {
  std::map<std::size_t, double> bytes;  ///< by index of Synchronizer
  double all = 0.0;
  double encoded = 0.0;
  double cut = 0.0;
  double replicated = 0.0;
  double shards = 0.0;
  double largest = 0.0;
  std::map<int, double> servers;
  std::set<int> groups;

  Tally() = default;
  Tally(const Strategy& strategy, const SearchTarget& target, std::int64_t samples) {
    for (const VariableStrategy& entry : strategy.variables) add(entry, target, samples);
  }
  void add(const VariableStrategy& entry, const SearchTarget& target, std::int64_t samples) {
    for (const Shard& shard : entry.shards) {
      const double size =
          wire_bytes(target.model.variable(entry.variable), entry, shard.elements, {.samples = samples});
      bytes[shard.synchronizer.index()] += size;
      all += size;
      shards += 1.0;
      largest = std::max(largest, size);
      if (entry.compressor != Compressor::None) encoded += size;
      if (entry.shards.size() > 1) cut += size;
      if (const auto* ps = std::get_if<PsSynchronizer>(&shard.synchronizer)) {
        servers[ps->server.node] += size;
        if (ps->local_replication) replicated += size;
      }
      if (const auto* reduced = std::get_if<AllReduceSynchronizer>(&shard.synchronizer)) groups.insert(reduced->group);
    }
  }
  [[nodiscard]] double share(double part) const { return all > 0.0 ? part / all : 0.0; }
  [[nodiscard]] double most_of_a_server() const {
    double out = 0.0;
    for (const auto& [node, size] : servers) out = std::max(out, size);
    return out;
  }
};

double log_of(double value) {
  return std::log(std::max(value, 1e-6));
}

void append_graph(const GraphStrategy& graph, Schedule schedule, std::vector<double>& out) {
  const auto flag = [&](bool value) { out.push_back(value ? 1.0 : 0.0); };
  for (const Schedule known : {Schedule::ReadAtStart, Schedule::WaitFree, Schedule::Priority, Schedule::Sharded})
    flag(schedule == known);
  for (const FusionKind known :
       {FusionKind::Groups, FusionKind::Buckets, FusionKind::Cycle, FusionKind::MergedGradient})
    flag(graph.fusion.kind == known);
  flag(graph.update_at == UpdateAt::Worker);
  flag(graph.aggregate_on_gpu);
  out.push_back(std::log1p(static_cast<double>(graph.scheduling.partition.count)));
  out.push_back(std::log1p(static_cast<double>(graph.scheduling.credit.count)));
  out.push_back(schedule == Schedule::Sharded ? graph.sharding.stage : 0.0);
  flag(graph.sharding.group > 0);
}

}  // namespace

const FeatureSchema& autosync_schema() {
  static const FeatureSchema kSchema{
      "autosync/v1",
      {"server_transmission_max", "server_transmission_sum", "server_overhead_max", "server_overhead_sum",
       "server_latency_max", "server_latency_sum", "group_transmission_max", "group_transmission_sum",
       "group_overhead_max", "group_overhead_sum", "group_latency_max", "group_latency_sum"}};
  return kSchema;
}

const FeatureSchema& strategy_schema() {
  static const FeatureSchema kSchema = [] {
    FeatureSchema out{"simsync/strategy-features/v1", {}};
    for (const std::string& name : autosync_schema().names) out.names.push_back("log_" + name);
    for (const char* name : {"log_simulated",
                             "log_estimate",
                             "log_bound",
                             "log_collectives",
                             "log_copies",
                             "log_worker_link",
                             "log_server_link",
                             "log_host_threads",
                             "log_server_threads",
                             "served_share",
                             "reduced_share",
                             "factors_share",
                             "sharded_share",
                             "encoded_share",
                             "cut_share",
                             "replicated_share",
                             "largest_shard_share",
                             "largest_server_share",
                             "log_shards",
                             "log_servers",
                             "log_groups",
                             "read_at_start",
                             "wait_free",
                             "priority",
                             "sharded",
                             "fused_by_groups",
                             "fused_by_buckets",
                             "fused_by_cycle",
                             "fused_by_cost",
                             "update_at_worker",
                             "aggregate_on_gpu",
                             "log_partition",
                             "log_credit",
                             "stage",
                             "shard_groups"})
      out.names.emplace_back(name);
    return out;
  }();
  return kSchema;
}

const FeatureSchema& segment_schema() {
  static const FeatureSchema kSchema = [] {
    FeatureSchema out{"simsync/segment-features/v1", {}};
    for (int segment = 1; segment <= kSegments; ++segment)
      for (const char* name : {"bytes", "served", "cut", "encoded", "replicated", "log_shards", "log_groups"})
        out.names.push_back(fmt::format("segment{}_{}", segment, name));
    return out;
  }();
  return kSchema;
}

std::vector<double> autosync_features(const Strategy& strategy, const SearchTarget& target, std::int64_t samples) {
  AutoSyncCosts costs(target, samples);
  for (const VariableStrategy& entry : strategy.variables)
    for (const Shard& shard : entry.shards) costs.add(entry, shard);
  return costs.features();
}

std::vector<double> strategy_features(const Strategy& strategy, const SearchTarget& target, std::int64_t samples,
                                      const Evaluation& estimate, Seconds simulated) {
  const double compute = std::max(1e-9, estimate.loads.compute.value());
  std::vector<double> out = autosync_features(strategy, target, samples);
  // Transmission is in seconds; the others are counts.
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = log_of(i % 6 < 2 ? out[i] / compute : out[i]);
  const StepLoads& loads = estimate.loads;
  for (const Seconds time : {simulated, estimate.step, estimate.bound, loads.collectives, loads.copies,
                             loads.worker_link, loads.server_link, loads.host_threads, loads.server_threads})
    out.push_back(std::log(time.value() / compute + 1e-3));
  Tally tally(strategy, target, samples);
  for (std::size_t kind = 0; kind < std::variant_size_v<Synchronizer>; ++kind)
    out.push_back(tally.share(tally.bytes[kind]));
  for (const double part : {tally.encoded, tally.cut, tally.replicated, tally.largest, tally.most_of_a_server()})
    out.push_back(tally.share(part));
  for (const double number :
       {tally.shards, static_cast<double>(tally.servers.size()), static_cast<double>(tally.groups.size())})
    out.push_back(std::log1p(number));
  append_graph(strategy.graph, schedule_of(strategy), out);
  SIMSYNC_ASSERT(out.size() == strategy_schema().names.size());
  return out;
}

std::vector<double> segment_features(const Strategy& strategy, const SearchTarget& target, std::int64_t samples) {
  const std::size_t variables = strategy.variables.size();
  std::array<Tally, kSegments> segments;
  for (std::size_t i = 0; i < variables; ++i)
    segments.at(i * kSegments / variables).add(strategy.variables[i], target, samples);
  double all = 0.0;
  for (const Tally& segment : segments) all += segment.all;
  std::vector<double> out;
  for (Tally& segment : segments) {
    const double served = segment.bytes[Synchronizer(PsSynchronizer{}).index()];
    for (const double part : {segment.all, served, segment.cut, segment.encoded, segment.replicated})
      out.push_back(all > 0.0 ? part / all : 0.0);
    out.push_back(std::log1p(segment.shards));
    out.push_back(std::log1p(static_cast<double>(segment.groups.size())));
  }
  SIMSYNC_ASSERT(out.size() == segment_schema().names.size());
  return out;
}

}  // namespace simsync
