// Learns from trials which of two strategies is faster.
#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "strategies/search/features.hpp"

namespace simsync {

enum class RankerKind {
  Linear,          ///< a weighted sum of strategy_schema()'s features
  AutoSyncLinear,  ///< a weighted sum of autosync_schema()'s
  Boosted,         ///< trees of strategy_schema()'s
  Recurrent,       ///< a recurrent network over segment_schema()'s, beside a weighted sum of strategy_schema()'s
};

/// What a trial of a strategy has taught.
struct Example {
  std::vector<double> features;
  double step = 0.0;  ///< s
  /// Only steps of one domain are compared: one model on one cluster with one number of workers and one batch.
  int domain = 0;
  double shards = 0.0;  ///< of nearly equal steps the one with more shards counts as slower
};

/// Steps whose ratio is nearer to 1 than this are equal as far as trials can tell.
inline constexpr double kNearTie = 0.005;

/// Says which of two strategies is faster.
class Ranker {
public:
  Ranker() = default;
  virtual ~Ranker() = default;
  Ranker(const Ranker&) = delete;
  Ranker& operator=(const Ranker&) = delete;

  /// The higher, the slower. Scores compare within a domain.
  [[nodiscard]] virtual double score(const std::vector<double>& features) const = 0;
  /// What it has learned.
  [[nodiscard]] virtual nlohmann::json weights() const = 0;
};

/// Nothing but fit() and restore() may be called before one of them was.
class LearningRanker : public Ranker {
public:
  /// Forgets what it knew. Needs two examples. Deterministic.
  virtual void fit(const std::vector<Example>& examples) = 0;
  /// As after the fit() that these weights came from. False: they are not those of such a ranker for so many features.
  /// @throws nlohmann::json::exception for weights that lack a part.
  [[nodiscard]] virtual bool restore(const nlohmann::json& weights, std::size_t features) = 0;
};

/// A ranker that has learned other models or clusters, and the standard deviations of two scores, within domains, over
/// the trials that it learned last. They are what makes both scores comparable without trials of the target.
struct TransferSource {
  std::shared_ptr<const Ranker> ranker;
  double deviation = 0.0;            ///< of the ranker's scores; 0: it tells no two of its trials apart
  double simulated_deviation = 0.0;  ///< of the logarithms of simulated steps; 0: as above, or the ranker sees none
};

struct LinearRankerOptions {
  /// A feature that ranks by itself, such as the logarithm of an estimate: its weight has no penalty, and without
  /// examples it is all that counts. None: all features are alike.
  std::optional<std::size_t> prior;
  /// Of the squared weights of standardized features, beside the mean loss of a pair. Of several the largest of those
  /// that rank as well as the best in a cross-validation.
  std::vector<double> penalties{1e-3, 1e-2, 1e-1, 1.0, 10.0};
  std::size_t most_pairs = 5'000;  ///< evenly among all, if there are more
};

/// A weighted sum of standardized features. Its weights minimize the logistic loss of the differences of pairs: the
/// linear simulator of AutoSync, but by Newton's method, which needs neither seed nor learning rate. A feature beyond
/// what the examples have counts as the nearest value that they have, other than the prior.
std::unique_ptr<LearningRanker> linear_ranker(LinearRankerOptions options = {});
/// A linear ranker that orders by one feature of so many.
std::shared_ptr<const Ranker> ranker_by(std::size_t feature, std::size_t features);

/// Share of pairs of one domain, nearly equal ones apart, whose order `scores` has as `examples`. Equal scores count
/// half. Nothing to compare: 1.
double pairwise_accuracy(const std::vector<Example>& examples, const std::vector<double>& scores);
/// The same of what `ranker` says of the examples.
double pairwise_accuracy(const std::vector<Example>& examples, const Ranker& ranker);
/// Whether that compares anything.
bool has_pairs(const std::vector<Example>& examples);

}  // namespace simsync
