// What a search chooses from: AutoSync's dimensions (Zhang et al., NeurIPS 2020) and those that simsync adds.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "strategies/options.hpp"
#include "strategies/strategy.hpp"

namespace simsync {

/// When gradients leave, and what the next step waits for: settings of the graph level that go together.
enum class Schedule {
  ReadAtStart,  ///< variables on servers are read when the next step starts, which waits for all (AutoDist)
  WaitFree,     ///< they are pulled as soon as they are updated; the next step waits for all (DDP, Horovod, Poseidon)
  Priority,     ///< urgent pieces first, a limit on what is in flight; each layer waits for its own (ByteScheduler)
  Sharded,      ///< ranks share out parameters and optimizer state (ZeRO, FSDP)
};

const Words<Schedule>& schedule_words();

enum class SynchronizerKind { ParameterServer, AllReduce, SufficientFactors };

/// How shards are dealt to servers, all at once.
enum class ServerRule {
  Random,
  LeastLoaded,   ///< the largest first, each to the server with the fewest bytes
  Proportional,  ///< the largest first, by a softmax over what servers lack of a share like that of their bandwidth
};

/// How all-reduced shards are dealt to fusion groups, all at once.
enum class GroupRule {
  Random,
  Chunks,    ///< so many in the order of the model
  Balanced,  ///< the largest first, by a softmax over what groups lack of an equal share
  Ordered,   ///< in the order of the model, a group is full when it has its share of the bytes
};

/// Values of every dimension. Each list has at least one.
struct SearchSpace {
  /// Some dimension lacks a value that it has by default: builders may be outside of the space, so that nothing is
  /// derived from them and none of them is the best.
  bool is_restricted = false;
  std::vector<Schedule> schedules;
  std::vector<SynchronizerKind> synchronizers;
  Bytes partition_above;    ///< variables with fewer bytes stay whole
  std::int64_t shards = 1;  ///< most of one variable
  bool any_axis = true;     ///< false: variables are cut on their first axis
  std::vector<Compressor> compressors;
  std::vector<bool> local_replication;
  std::vector<ServerRule> server_rules;
  std::int64_t servers = 0;  ///< most hosts that serve; 0: all
  std::vector<GroupRule> group_rules;
  std::int64_t groups = 1;  ///< most fusion groups
  std::vector<FusionKind> fusions;
  std::vector<CollectiveAlgorithm> algorithms;
  std::vector<int> stages;  ///< of ZeRO
  // Values of the graph level, for the fusions and schedules that have them.
  std::vector<Bytes> buckets;     ///< most of a bucket
  std::vector<Bytes> thresholds;  ///< most that is merged in a cycle
  std::vector<Seconds> cycles;
  std::vector<Bytes> pieces;       ///< of the priority schedule: most of a piece
  std::vector<Bytes> credits;      ///< of the priority schedule: in flight
  std::vector<Bytes> units;        ///< of sharded schedules: least of a unit
  std::vector<bool> shard_groups;  ///< of sharded schedules: whether a node's ranks are a group (hybrid)
};

/// Names, defaults and meanings of all dimensions, for `simsync list space`.
const std::vector<OptionInfo>& space_dimensions();
/// The space that `given` (dimension, value) restricts or widens. Algorithms are those of the cluster's library unless
/// they are given. @throws InputError for an unknown dimension or value, naming the closest.
SearchSpace make_space(const std::map<std::string, std::string>& given, const Cluster& cluster);

/// Decimal logarithm of how many strategies the space has for the variables of `model`: how each is cut, synchronized
/// and encoded, on which server or in which group each shard is. Labels of groups count as different; decisions of the
/// graph level do not count.
double log10_size(const SearchSpace& space, const Model& model, const Cluster& cluster, int workers);

}  // namespace simsync
