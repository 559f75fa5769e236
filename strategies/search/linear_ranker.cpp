#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "strategies/search/example_pairs.hpp"
#include "strategies/search/folds.hpp"
#include "strategies/search/ranker.hpp"
#include "strategies/search/vectors.hpp"

namespace simsync {
namespace {

using detail::as_values;
using detail::as_vector;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Inverse standard deviations of the features. A feature that never changes says nothing: 0.
VectorXd scales_of(const std::vector<Example>& examples) {
  const auto width = static_cast<Index>(examples.front().features.size());
  VectorXd mean = VectorXd::Zero(width);
  VectorXd squares = VectorXd::Zero(width);
  for (const Example& example : examples) {
    SIMSYNC_ASSERT(static_cast<Index>(example.features.size()) == width);
    mean += as_vector(example.features);
  }
  mean /= static_cast<double>(examples.size());
  for (const Example& example : examples) squares += (as_vector(example.features) - mean).cwiseAbs2();
  const Eigen::ArrayXd deviation = (squares / static_cast<double>(examples.size())).cwiseSqrt().array();
  constexpr double kLeast = 1e-9;
  return (deviation > kLeast).select(deviation.max(kLeast).inverse(), 0.0);
}

/// The value of each weight that is not penalized, and the penalty of others by their squared distance from it.
struct Prior {
  VectorXd center;
  VectorXd penalties;
};

/// mean log(1 + e^-d) + sum of penalty_i (w_i - center_i)^2 / 2 over pairs, d the score of the slower minus that of the
/// faster.
class PairwiseLoss {
public:
  PairwiseLoss(MatrixXd differences, Prior prior) : differences_(std::move(differences)), prior_(std::move(prior)) {}

  /// Convex, so Newton's steps from the center, halved until they help, end in the only minimum.
  [[nodiscard]] VectorXd minimum() const {
    constexpr int kMostSteps = 50;
    constexpr double kDone = 1e-9;
    VectorXd weights = prior_.center;
    if (differences_.rows() == 0) return weights;
    const auto pairs = static_cast<double>(differences_.rows());
    double loss = at(weights);
    for (int step = 0; step < kMostSteps; ++step) {
      const VectorXd wrong = (1.0 + (differences_ * weights).array().exp()).inverse();
      const VectorXd gradient =
          prior_.penalties.cwiseProduct(weights - prior_.center) - differences_.transpose() * wrong / pairs;
      const VectorXd curvature = wrong.array() * (1.0 - wrong.array()) / pairs;
      MatrixXd hessian = differences_.transpose() * curvature.asDiagonal() * differences_;
      hessian.diagonal() += prior_.penalties;
      const VectorXd direction = hessian.ldlt().solve(gradient);
      double length = 1.0;
      double next = at(weights - direction);
      for (; !(next <= loss) && length > kDone; next = at(weights - length * direction)) length /= 2.0;
      if (!(loss - next > kDone)) return weights;
      weights -= length * direction;
      loss = next;
    }
    return weights;
  }

private:
  [[nodiscard]] double at(const VectorXd& weights) const {
    const Eigen::ArrayXd margin = (differences_ * weights).array();
    // log(1 + e^-m) without overflow.
    const Eigen::ArrayXd loss = (-margin).max(0.0) + (1.0 + (-margin.abs()).exp()).log();
    return loss.mean() + 0.5 * prior_.penalties.dot((weights - prior_.center).cwiseAbs2());
  }

  MatrixXd differences_;  ///< pairs x features: of the slower minus of the faster
  Prior prior_;
};

/// A weighted sum of features. One beyond what was learned counts as the nearest value that was: a sum of few examples
/// would go on without end where nothing is known, which a sum of trees does not.
struct BoundedSum {
  VectorXd weights;
  VectorXd least;  ///< of each feature
  VectorXd most;

  [[nodiscard]] double of(const std::vector<double>& features) const {
    SIMSYNC_ASSERT(weights.size() > 0 && static_cast<Index>(features.size()) == weights.size());
    return weights.dot(as_vector(features).cwiseMax(least).cwiseMin(most));
  }
};

BoundedSum unbounded(VectorXd weights) {
  const Index width = weights.size();
  constexpr double kMost = std::numeric_limits<double>::max();
  return {std::move(weights), VectorXd::Constant(width, -kMost), VectorXd::Constant(width, kMost)};
}

/// Bounded by what the examples have. `prior` ranks by itself, and so has no bounds.
BoundedSum bounded(VectorXd weights, const std::vector<Example>& examples, std::optional<std::size_t> prior) {
  BoundedSum out = unbounded(std::move(weights));
  for (Index i = 0; i < out.weights.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (at == prior) continue;
    const auto [least, most] =
        std::minmax_element(examples.begin(), examples.end(),
                            [&](const Example& a, const Example& b) { return a.features[at] < b.features[at]; });
    out.least[i] = least->features[at];
    out.most[i] = most->features[at];
  }
  return out;
}

class LinearRanker final : public LearningRanker {
public:
  explicit LinearRanker(LinearRankerOptions options, BoundedSum sum = {})
      : options_(std::move(options)), sum_(std::move(sum)) {
    SIMSYNC_ASSERT(!options_.penalties.empty());
  }

  void fit(const std::vector<Example>& examples) override {
    SIMSYNC_ASSERT(examples.size() >= 2);
    const double penalty = options_.penalties.size() == 1 ? options_.penalties.front() : best_penalty(examples);
    sum_ = minimum(examples, penalty);
  }

  [[nodiscard]] double score(const std::vector<double>& features) const override { return sum_.of(features); }

  [[nodiscard]] nlohmann::json weights() const override {
    SIMSYNC_ASSERT(sum_.weights.size() > 0);
    return {{"of_features", as_values(sum_.weights)}, {"least", as_values(sum_.least)}, {"most", as_values(sum_.most)}};
  }

  [[nodiscard]] bool restore(const nlohmann::json& weights, std::size_t features) override {
    const auto vector = [&](const char* of) { return weights.at(of).get<std::vector<double>>(); };
    const auto [values, least, most] = std::array{vector("of_features"), vector("least"), vector("most")};
    if (values.size() != features || least.size() != features || most.size() != features) return false;
    sum_ = {as_vector(values), as_vector(least), as_vector(most)};
    return true;
  }

private:
  /// Its weights are those of unscaled features.
  [[nodiscard]] BoundedSum minimum(const std::vector<Example>& examples, double penalty) const {
    const VectorXd scales = scales_of(examples);
    const auto pairs = detail::pairs_of(examples, options_.most_pairs);
    MatrixXd differences(static_cast<Index>(pairs.size()), scales.size());
    for (std::size_t p = 0; p < pairs.size(); ++p) {
      const VectorXd difference =
          as_vector(examples[pairs[p].first].features) - as_vector(examples[pairs[p].second].features);
      differences.row(static_cast<Index>(p)) = difference.cwiseProduct(scales).transpose();
    }
    const PairwiseLoss loss(std::move(differences), prior(scales.size(), penalty));
    return bounded(loss.minimum().cwiseProduct(scales), examples, options_.prior);
  }

  [[nodiscard]] Prior prior(Index width, double penalty) const {
    constexpr double kNearlyNone = 1e-6;  // so that pairs which it ranks perfectly leave it finite
    Prior out{VectorXd::Zero(width), VectorXd::Constant(width, penalty)};
    if (options_.prior) {
      const auto at = static_cast<Index>(*options_.prior);
      out.penalties[at] = kNearlyNone;
      out.center[at] = 1.0;
    }
    return out;
  }

  /// The largest of those that rank as well as the best in a cross-validation.
  [[nodiscard]] double best_penalty(const std::vector<Example>& examples) const {
    std::vector<double> penalties = options_.penalties;
    std::sort(penalties.rbegin(), penalties.rend());
    std::vector<std::vector<double>> accuracies(penalties.size());
    for (const detail::Fold& fold : detail::folds_of(examples)) {
      for (std::size_t i = 0; i < penalties.size(); ++i) {
        const BoundedSum sum = minimum(fold.known, penalties[i]);
        std::vector<double> scores;
        for (const Example& example : fold.held) scores.push_back(sum.of(example.features));
        accuracies[i].push_back(pairwise_accuracy(fold.held, scores));
      }
    }
    return penalties[detail::first_of_the_best(accuracies)];
  }

  LinearRankerOptions options_;
  BoundedSum sum_;
};

}  // namespace

std::unique_ptr<LearningRanker> linear_ranker(LinearRankerOptions options) {
  return std::make_unique<LinearRanker>(std::move(options));
}

std::shared_ptr<const Ranker> ranker_by(std::size_t feature, std::size_t features) {
  SIMSYNC_ASSERT(feature < features);
  const VectorXd weights = VectorXd::Unit(static_cast<Index>(features), static_cast<Index>(feature));
  return std::make_shared<LinearRanker>(LinearRankerOptions{}, unbounded(weights));
}

}  // namespace simsync
