// Looks for a fast strategy: proposes candidates, runs a few of them as trials, and learns from these.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "strategies/evaluator.hpp"
#include "strategies/search/ranker.hpp"
#include "strategies/search/sampler.hpp"
#include "strategies/search/shard_curve.hpp"

namespace simsync {

enum class SearchMethod {
  Random,      ///< every draw is a trial
  Anneal,      ///< simulated annealing on the ranker's score, from the best trial so far
  Mutate,      ///< children of the best trials, changed or crossed
  AutoSync,    ///< fresh draws; the ranker rejects, the rest is picked for speed and variety (Zhang et al., 2020)
  Exhaustive,  ///< all strategies of a small space
  Shards,      ///< how many shards of sparse variables, by doubling and a curve (Kim et al., 2019)
};
const Words<SearchMethod>& search_method_words();

/// A strategy with what simulations say of it.
struct Candidate {
  Strategy strategy;
  std::string origin;  ///< `ddp` for that builder; else how it came about: drawn, changed, crossed
  std::string id;      ///< of its content, 12 hexadecimal digits
  Evaluation estimate;
  std::optional<Seconds> replayed;  ///< where trials are real runs
  std::vector<double> features;     ///< strategy_features
};

struct Trial {
  int number = 0;  ///< from 0: builders first
  int round = 0;   ///< 0: builders
  Candidate candidate;
  std::optional<Seconds> step;  ///< none: it could not run
};

/// Runs candidates side by side if it can; trials are numbered from `first`. Steps in the order of the candidates: of
/// all of them, or, when the search is stopped, of those that were run.
using RunTrials =
    std::function<std::vector<std::optional<Seconds>>(const std::vector<Candidate>& candidates, int first, int round)>;

struct SearchProblem {
  const StrategySampler& sampler;
  std::int64_t samples = 1;  ///< of a worker in a step
  Evaluator& estimates;
  Evaluator* replays = nullptr;  ///< where trials are real runs: what is picked from is replayed before
  std::vector<std::pair<std::string, Strategy>> builders;  ///< tried first, and what other methods begin with
  /// Whether what the strategy keeps fits into the memory of the devices.
  std::function<bool(const Strategy&)> fits;
  RunTrials run;
  /// Asked before every round: true ends the search. Null: nothing does.
  std::function<bool()> stop;
  /// What a ranker of the same kind has learned elsewhere; none: nothing.
  std::optional<TransferSource> source;
};

struct SearchOptions {
  SearchMethod method = SearchMethod::AutoSync;
  int trials = 200;      ///< besides builders
  int round = 20;        ///< trials before the ranker learns again
  int candidates = 500;  ///< that are estimated for each round; for annealing the steps of a chain
  /// How much a pick is worth for being unlike the others of its round, in standard deviations of the score.
  double diversity = 0.5;
  std::uint64_t seed = 1;
  int steps_per_trial = 7;  ///< that the cluster runs for each trial, warm-up included
  /// Of the cluster for all trials, builders included: none begins once they have taken so long. What runs side by side
  /// is chosen by what is predicted of it, so that trials that take longer than predicted may exceed it.
  std::optional<Seconds> budget;
  RankerKind ranker = RankerKind::Linear;
};

struct SearchResult {
  std::vector<Trial> trials;
  std::int64_t candidates = 0;            ///< that were estimated
  std::int64_t too_large = 0;             ///< of them, did not fit into memory
  std::optional<ShardCurve> shard_curve;  ///< of SearchMethod::Shards, when it has ended
  bool is_restricted = false;             ///< SearchSpace::is_restricted
  Seconds cluster_time;  ///< that all trials take, or would take on the cluster: steps_per_trial steps each

  /// Whether it is known to be in the space: of a restricted one, builders are not.
  [[nodiscard]] bool is_inside(const Trial& trial) const { return !is_restricted || trial.round > 0; }
  /// The fastest that is inside, or the fastest builder where none of these ran; of equal ones the first. None: nothing
  /// ran.
  [[nodiscard]] const Trial* best() const;
  [[nodiscard]] const Trial* best_builder() const;
};

/// The builder that SearchMethod::Shards begins with; it needs no other.
inline constexpr const char* kShardsBuilder = "parallax";

/// The most strategies that an exhaustive search goes through.
inline constexpr std::int64_t kMostExhaustive = 100'000;

/// The same options, problem and results of trials make the same search. @throws InputError for an exhaustive search of
/// a space with more strategies than kMostExhaustive.
SearchResult search(const SearchProblem& problem, const SearchOptions& options);

double shards_of(const Strategy& strategy);

/// Of the content of a strategy, whatever its name: the beginning of a SHA-256.
std::string strategy_id(const Strategy& strategy, const Model& model);

}  // namespace simsync
