#include "strategies/search/space.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "strategies/names.hpp"
#include "strategies/partition.hpp"
#include "strategies/placement.hpp"

namespace simsync {
namespace {

const Words<SynchronizerKind> kSynchronizers{{"parameter-server", SynchronizerKind::ParameterServer},
                                             {"all-reduce", SynchronizerKind::AllReduce},
                                             {"sufficient-factors", SynchronizerKind::SufficientFactors}};
const Words<ServerRule> kServerRules{{"random", ServerRule::Random},
                                     {"least-loaded", ServerRule::LeastLoaded},
                                     {"proportional", ServerRule::Proportional}};
const Words<GroupRule> kGroupRules{{"random", GroupRule::Random},
                                   {"chunks", GroupRule::Chunks},
                                   {"balanced", GroupRule::Balanced},
                                   {"ordered", GroupRule::Ordered}};
const Words<bool> kTruth{{"false", false}, {"true", true}};
const Words<int> kStages{{"1", 1}, {"2", 2}, {"3", 3}};
constexpr const char* kByLibrary = "library";
constexpr std::int64_t kMost = 1'000'000;

/// What the library of the cluster can be told to run.
std::vector<CollectiveAlgorithm> algorithms_of(const Cluster& cluster) {
  using enum CollectiveAlgorithm;
  if (cluster.collective.algorithm == "auto") return {Auto, Ring, DoubleBinaryTree};  // NCCL_ALGO
  return {Auto, Ring, HalvingDoubling};                                               // Gloo
}

/// Of the same variable, in any case: on a server, with or without copies, or in a group.
double choices_of_shard(const SearchSpace& space, bool is_sparse, double servers) {
  double out = 0.0;
  for (const SynchronizerKind kind : space.synchronizers) {
    if (kind == SynchronizerKind::ParameterServer)
      out += servers * (is_sparse ? 1.0 : static_cast<double>(space.local_replication.size()));
    if (kind == SynchronizerKind::AllReduce) out += is_sparse ? 1.0 : static_cast<double>(space.groups);
  }
  return out;
}

/// log10 of the sum of 10^a and 10^b.
double log10_sum(double a, double b) {
  const double high = std::max(a, b);
  return high + std::log10(1.0 + std::pow(10.0, std::min(a, b) - high));
}

}  // namespace

const Words<Schedule>& schedule_words() {
  static const Words<Schedule> kWords{{"read-at-start", Schedule::ReadAtStart},
                                      {"wait-free", Schedule::WaitFree},
                                      {"priority", Schedule::Priority},
                                      {"sharded", Schedule::Sharded}};
  return kWords;
}

const std::vector<OptionInfo>& space_dimensions() {
  static const std::vector<OptionInfo> kDimensions{
      {"schedules", "read-at-start,wait-free,priority,sharded",
       "when gradients leave and what the next step waits for: read-at-start (AutoDist), wait-free (DDP, Horovod, "
       "Poseidon), priority (BytePS, ByteScheduler, P3), sharded (ZeRO, FSDP)"},
      {"synchronizers", "parameter-server,all-reduce,sufficient-factors",
       "of a variable, or of each of its shards; sufficient-factors for whole matrices of dense layers only"},
      {"partition_above", "100000B", "variables with fewer bytes are not cut into shards"},
      {"shards", "40", "most shards of a variable; 1: none is cut"},
      {"any_axis", "true", "false: variables are cut on their first axis only; sparse ones always are"},
      {"compressors", "none",
       "none, fp16, powersgd, cast32; all but none change what is learned, so they must be asked for"},
      {"local_replication", "false,true", "whether a host keeps a copy of a dense variable that its GPUs read"},
      {"server_rules", "random,least-loaded,proportional", "how shards are dealt to servers"},
      {"servers", "0", "most hosts that serve; 0: all that have workers or have no GPU"},
      {"group_rules", "random,chunks,balanced,ordered", "how all-reduced shards are dealt to fusion groups"},
      {"groups", "20", "most fusion groups"},
      {"fusions", "groups,buckets,cycle,merged-gradient,none",
       "what merges all-reduced gradients: groups of the rules above, or buckets (DDP), cycle (Horovod), "
       "merged-gradient "
       "(MG-WFBP), single, none"},
      {"algorithms", kByLibrary, "of all-reduces; library: what that of the cluster can be told to run"},
      {"stages", "1,2,3", "of sharded schedules: ZeRO's"},
      // Around the defaults of DDP (25 MiB), Horovod (64 MiB, 5 ms), P3 (160 kB, one message), BytePS (4 MB) and
      // ByteScheduler (4 and 16 MB).
      {"buckets", "2MiB,5MiB,10MiB,25MiB,50MiB,100MiB", "of the fusion buckets: the most of one"},
      {"thresholds", "16MiB,32MiB,64MiB,128MiB", "of the fusion cycle: the most that is merged"},
      {"cycles", "1ms,2.5ms,5ms,10ms", "of the fusion cycle: how often"},
      {"pieces", "500KB,1MB,2MB,4MB,8MB,32MB", "of the priority schedule: the most of an all-reduced piece"},
      {"credits", "0B,1B,4MB,16MB,64MB",
       "of the priority schedule: what is in flight; 0B: no limit; 1B: one message at a time"},
      {"units", "0B,25MB,100MB", "of sharded schedules: the least that is gathered at once"},
      {"shard_groups", "false,true",
       "of sharded schedules: whether ranks of a node share out among themselves (hybrid), where that is possible"}};
  return kDimensions;
}

namespace {

template <class T>
bool lacks(const std::vector<T>& values, const std::vector<T>& usual) {
  return std::any_of(usual.begin(), usual.end(),
                     [&](const T& value) { return std::find(values.begin(), values.end(), value) == values.end(); });
}

/// Some of the usual values of some dimension.
bool lacks(const SearchSpace& space, const SearchSpace& usual) {
  const auto most = [](std::int64_t count) { return count == 0 ? std::numeric_limits<std::int64_t>::max() : count; };
  return lacks(space.schedules, usual.schedules) || lacks(space.synchronizers, usual.synchronizers) ||
         space.partition_above > usual.partition_above || space.shards < usual.shards ||
         (usual.any_axis && !space.any_axis) || lacks(space.compressors, usual.compressors) ||
         lacks(space.local_replication, usual.local_replication) || lacks(space.server_rules, usual.server_rules) ||
         most(space.servers) < most(usual.servers) || lacks(space.group_rules, usual.group_rules) ||
         space.groups < usual.groups || lacks(space.fusions, usual.fusions) ||
         lacks(space.algorithms, usual.algorithms) || lacks(space.stages, usual.stages) ||
         lacks(space.buckets, usual.buckets) || lacks(space.thresholds, usual.thresholds) ||
         lacks(space.cycles, usual.cycles) || lacks(space.pieces, usual.pieces) ||
         lacks(space.credits, usual.credits) || lacks(space.units, usual.units) ||
         lacks(space.shard_groups, usual.shard_groups);
}

SearchSpace read_space(const std::map<std::string, std::string>& given, const Cluster& cluster) {
  const Options options("the search space", space_dimensions(), given);
  SearchSpace out;
  out.schedules = options.some_of("schedules", schedule_words());
  out.synchronizers = options.some_of("synchronizers", kSynchronizers);
  out.partition_above = options.bytes("partition_above", 0);
  out.shards = options.integer("shards", 1, kMost);
  out.any_axis = options.boolean("any_axis");
  out.compressors = options.some_of("compressors", compressor_words());
  out.local_replication = options.some_of("local_replication", kTruth);
  out.server_rules = options.some_of("server_rules", kServerRules);
  out.servers = options.integer("servers", 0, kMost);
  out.group_rules = options.some_of("group_rules", kGroupRules);
  out.groups = options.integer("groups", 1, kMost);
  out.fusions = options.some_of("fusions", fusion_kind_words());
  out.stages = options.some_of("stages", kStages);
  out.buckets = options.sizes("buckets", 1);
  out.thresholds = options.sizes("thresholds", 1);
  out.cycles = options.times("cycles");
  out.pieces = options.sizes("pieces", 0);
  out.credits = options.sizes("credits", 0);
  out.units = options.sizes("units", 0);
  out.shard_groups = options.some_of("shard_groups", kTruth);
  out.algorithms = options.text("algorithms") == kByLibrary
                       ? algorithms_of(cluster)
                       : options.some_of("algorithms", collective_algorithm_words());
  return out;
}

}  // namespace

SearchSpace make_space(const std::map<std::string, std::string>& given, const Cluster& cluster) {
  SearchSpace out = read_space(given, cluster);
  out.is_restricted = lacks(out, read_space({}, cluster));
  return out;
}

double log10_size(const SearchSpace& space, const Model& model, const Cluster& cluster, int workers) {
  const auto hosts = static_cast<double>(hosts_of(cluster, workers).all().size());
  const double servers = space.servers > 0 ? std::min(hosts, static_cast<double>(space.servers)) : hosts;
  double out = 0.0;
  for (const Variable& variable : model.variables()) {
    const double of_shard = std::log10(std::max(1.0, choices_of_shard(space, variable.sparse, servers)));
    double ways = of_shard;
    const bool is_matrix = model.layer(variable.layer).kind == LayerKind::Dense && variable.shape.size() == 2;
    const bool has_factors = std::find(space.synchronizers.begin(), space.synchronizers.end(),
                                       SynchronizerKind::SufficientFactors) != space.synchronizers.end();
    if (is_matrix && has_factors) ways = log10_sum(ways, 0.0);
    if (variable.bytes() >= space.partition_above) {
      for (const int axis : splittable_axes(variable)) {
        if (axis > 0 && !space.any_axis) continue;
        const std::int64_t most = std::min(space.shards, variable.shape[static_cast<std::size_t>(axis)]);
        for (std::int64_t count = 2; count <= most; ++count)
          ways = log10_sum(ways, static_cast<double>(count) * of_shard);
      }
    }
    out += ways + std::log10(static_cast<double>(space.compressors.size()));
  }
  return out;
}

}  // namespace simsync
