// Pairs of a strategy and its step, each from a random stream of its own: which others are made, and in which order,
// does not matter.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "strategies/search/search.hpp"

namespace simsync {

/// Where the pairs of one model, cluster and number of workers come from.
struct PairSource {
  const StrategySampler& sampler;
  std::int64_t samples = 1;  ///< of a worker in a step
  Evaluator& estimates;
  Evaluator& trials;  ///< say the step
  int builders = 0;   ///< so many pairs are of builders, if these can run
  /// Name and strategy of a builder; nothing where it does not apply.
  std::function<std::optional<std::pair<std::string, Strategy>>(int builder)> builder;
  /// Whether what the strategy keeps fits into the memory of the devices.
  std::function<bool(const Strategy&)> fits;
  /// Strategies with more are not taken, as if they could not run: a table that is cut row by row would take minutes.
  /// AutoSync's learned ranker takes 1,500.
  double most_shards = 5000.0;
  std::uint64_t seed = 1;
};

/// A strategy with what the estimate says of it; nothing where it cannot run or does not fit into memory.
std::optional<Candidate> candidate_of(const PairSource& source, Strategy strategy, const std::string& origin);

/// Pair number `index`, from 0: of a builder (round 0), or drawn from the space (round 1). What does not fit into
/// memory or cannot run is drawn again; nothing after 200 draws in vain.
std::optional<Trial> pair_at(const PairSource& source, int index);

}  // namespace simsync
