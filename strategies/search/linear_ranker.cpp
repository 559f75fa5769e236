#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "strategies/search/example_pairs.hpp"
#include "strategies/search/folds.hpp"
#include "strategies/search/ranker.hpp"

namespace simsync {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

Eigen::Map<const VectorXd> as_vector(const std::vector<double>& values) {
  return {values.data(), static_cast<Index>(values.size())};
}

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

/// Where the penalty of each weight is 0, and how fast it grows.
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

class LinearRanker final : public LearningRanker {
public:
  explicit LinearRanker(LinearRankerOptions options) : options_(std::move(options)) {
    SIMSYNC_ASSERT(!options_.penalties.empty());
  }

  void fit(const std::vector<Example>& examples) override {
    SIMSYNC_ASSERT(examples.size() >= 2);
    const double penalty = options_.penalties.size() == 1 ? options_.penalties.front() : best_penalty(examples);
    weights_ = minimum(examples, penalty);
  }

  [[nodiscard]] double score(const std::vector<double>& features) const override {
    SIMSYNC_ASSERT(weights_.size() > 0 && static_cast<Index>(features.size()) == weights_.size());
    return weights_.dot(as_vector(features));
  }

  [[nodiscard]] nlohmann::json weights() const override {
    SIMSYNC_ASSERT(weights_.size() > 0);
    return {{"of_features", std::vector<double>(weights_.begin(), weights_.end())}};
  }

  [[nodiscard]] bool restore(const nlohmann::json& weights, std::size_t features) override {
    const auto values = weights.at("of_features").get<std::vector<double>>();
    if (values.size() != features) return false;
    weights_ = as_vector(values);
    return true;
  }

private:
  /// Weights for features as they are.
  [[nodiscard]] VectorXd minimum(const std::vector<Example>& examples, double penalty) const {
    const VectorXd scales = scales_of(examples);
    const auto pairs = detail::pairs_of(examples, options_.most_pairs);
    MatrixXd differences(static_cast<Index>(pairs.size()), scales.size());
    for (std::size_t p = 0; p < pairs.size(); ++p) {
      const VectorXd difference =
          as_vector(examples[pairs[p].first].features) - as_vector(examples[pairs[p].second].features);
      differences.row(static_cast<Index>(p)) = difference.cwiseProduct(scales).transpose();
    }
    return PairwiseLoss(std::move(differences), prior(scales.size(), penalty)).minimum().cwiseProduct(scales);
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
        const VectorXd weights = minimum(fold.known, penalties[i]);
        std::vector<double> scores;
        for (const Example& example : fold.held) scores.push_back(weights.dot(as_vector(example.features)));
        accuracies[i].push_back(pairwise_accuracy(fold.held, scores));
      }
    }
    return penalties[detail::first_of_the_best(accuracies)];
  }

  LinearRankerOptions options_;
  VectorXd weights_;
};

}  // namespace

std::unique_ptr<LearningRanker> linear_ranker(LinearRankerOptions options) {
  return std::make_unique<LinearRanker>(std::move(options));
}

}  // namespace simsync
