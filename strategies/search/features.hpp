// A strategy in numbers, for rankers. Names of hosts and groups do not matter: a feature is a sum, a maximum or a
// share.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "strategies/evaluator.hpp"
#include "strategies/search/sampler.hpp"

namespace simsync {

/// Says what the numbers of a feature vector are; another list is another schema.
struct FeatureSchema {
  std::string name;
  std::vector<std::string> names;
  friend bool operator==(const FeatureSchema&, const FeatureSchema&) = default;
};

/// The twelve of AutoSync's linear simulator: of transmission (s), network overhead (receivers) and GPU latency
/// (replicas on a host) the largest of a server, the sum over servers, the largest of a fusion group, the sum over
/// groups. Transmission is a shard's bytes over the slower NIC of both ends; of a group over the slowest of all.
const FeatureSchema& autosync_schema();
/// These, the seconds of a replay, of an estimate and of the resources that it is made of, each over the time of
/// compute, and shares of the bytes by synchronizer, numbers of shards, servers and groups, and the graph level.
/// Seconds and counts as logarithms, so that they compare across models and clusters.
const FeatureSchema& strategy_schema();
/// What happens to each eighth of the model's variables, in the model's order: its share of the bytes; how much of
/// these is on servers, cut, encoded and replicated; and its shards and fusion groups, as logarithms. One eighth after
/// the other, so that as many numbers describe any model: AutoSync's recurrent simulator sees every variable instead.
const FeatureSchema& segment_schema();
inline constexpr int kSegments = 8;

/// `samples`: of a worker in a step. Gradients count as wide as the variables of the model. In the order of the
/// schema's names.
std::vector<double> autosync_features(const Strategy& strategy, const SearchTarget& target, std::int64_t samples);
/// `simulated` is the step of a replay where there is one, else that of the estimate.
std::vector<double> strategy_features(const Strategy& strategy, const SearchTarget& target, std::int64_t samples,
                                      const Evaluation& estimate, Seconds simulated);
std::vector<double> segment_features(const Strategy& strategy, const SearchTarget& target, std::int64_t samples);

}  // namespace simsync
