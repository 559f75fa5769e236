#include <Eigen/Dense>
#include <cmath>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "strategies/search/ranker.hpp"

namespace simsync {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Indices of the slower and of the faster example.
using Pair = std::pair<std::size_t, std::size_t>;

std::vector<Pair> pairs_of(const std::vector<Example>& examples, std::size_t most) {
  std::vector<Pair> all;
  for (std::size_t i = 0; i < examples.size(); ++i) {
    for (std::size_t k = i + 1; k < examples.size(); ++k) {
      const Example& a = examples[i];
      const Example& b = examples[k];
      if (a.domain != b.domain) continue;
      const double ratio = std::log(a.step / b.step);
      const double slower = std::abs(ratio) >= kNearTie ? ratio : a.shards - b.shards;
      if (slower > 0.0) all.emplace_back(i, k);
      if (slower < 0.0) all.emplace_back(k, i);
    }
  }
  if (all.size() <= most) return all;
  std::vector<Pair> out;
  for (std::size_t i = 0; i < most; ++i) out.push_back(all[i * all.size() / most]);
  return out;
}

/// Features with mean 0 and standard deviation 1.
class Standardization {
public:
  /// A feature that never changes says nothing: its scale is 0.
  explicit Standardization(const std::vector<Example>& examples) {
    const auto width = static_cast<Index>(examples.front().features.size());
    mean_ = VectorXd::Zero(width);
    VectorXd squares = VectorXd::Zero(width);
    for (const Example& example : examples) mean_ += as_vector(example.features);
    mean_ /= static_cast<double>(examples.size());
    for (const Example& example : examples) squares += (as_vector(example.features) - mean_).cwiseAbs2();
    const Eigen::ArrayXd deviation = (squares / static_cast<double>(examples.size())).cwiseSqrt().array();
    constexpr double kLeast = 1e-9;
    inverse_ = (deviation > kLeast).select(deviation.max(kLeast).inverse(), 0.0);
  }
  [[nodiscard]] VectorXd of(const std::vector<double>& features) const {
    SIMSYNC_ASSERT(static_cast<Index>(features.size()) == mean_.size());
    return (as_vector(features) - mean_).cwiseProduct(inverse_);
  }

private:
  static Eigen::Map<const VectorXd> as_vector(const std::vector<double>& values) {
    return {values.data(), static_cast<Index>(values.size())};
  }
  VectorXd mean_;
  VectorXd inverse_;  ///< of the standard deviations
};

/// mean log(1 + e^-d) + sum of penalty_i w_i^2 / 2 over pairs, d the score of the slower minus that of the faster.
class PairwiseLoss {
public:
  PairwiseLoss(MatrixXd differences, VectorXd penalties)
      : differences_(std::move(differences)), penalties_(std::move(penalties)) {}

  /// Convex, so Newton's steps from `weights`, halved until they help, end in the only minimum.
  [[nodiscard]] VectorXd minimum(VectorXd weights) const {
    constexpr int kMostSteps = 50;
    constexpr double kDone = 1e-9;
    if (differences_.rows() == 0) return weights;
    const auto pairs = static_cast<double>(differences_.rows());
    double loss = at(weights);
    for (int step = 0; step < kMostSteps; ++step) {
      const VectorXd wrong = (1.0 + (differences_ * weights).array().exp()).inverse();
      const VectorXd gradient = penalties_.cwiseProduct(weights) - differences_.transpose() * wrong / pairs;
      const VectorXd curvature = wrong.array() * (1.0 - wrong.array()) / pairs;
      MatrixXd hessian = differences_.transpose() * curvature.asDiagonal() * differences_;
      hessian.diagonal() += penalties_;
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
    return loss.mean() + 0.5 * penalties_.dot(weights.cwiseAbs2());
  }

  MatrixXd differences_;  ///< pairs x features: of the slower minus of the faster
  VectorXd penalties_;
};

class LinearRanker final : public Ranker {
public:
  explicit LinearRanker(LinearRankerOptions options) : options_(std::move(options)) {
    SIMSYNC_ASSERT(!options_.penalties.empty());
  }

  void fit(const std::vector<Example>& examples) override {
    SIMSYNC_ASSERT(examples.size() >= 2);
    fit(examples, options_.penalties.size() == 1 ? options_.penalties.front() : best_penalty(examples));
  }

  [[nodiscard]] double score(const std::vector<double>& features) const override {
    SIMSYNC_ASSERT(scale_.has_value());
    return weights_.dot(scale_->of(features));
  }

private:
  void fit(const std::vector<Example>& examples, double penalty) {
    scale_.emplace(examples);
    const auto width = static_cast<Index>(examples.front().features.size());
    const std::vector<Pair> pairs = pairs_of(examples, options_.most_pairs);
    MatrixXd differences(static_cast<Index>(pairs.size()), width);
    for (std::size_t p = 0; p < pairs.size(); ++p)
      differences.row(static_cast<Index>(p)) =
          (scale_->of(examples[pairs[p].first].features) - scale_->of(examples[pairs[p].second].features)).transpose();
    VectorXd penalties = VectorXd::Constant(width, penalty);
    VectorXd start = VectorXd::Zero(width);
    if (options_.prior) {
      constexpr double kNearlyNone = 1e-6;  // so that pairs which it ranks perfectly leave it finite
      const auto prior = static_cast<Index>(*options_.prior);
      penalties[prior] = kNearlyNone;
      start[prior] = 1.0;
    }
    weights_ = PairwiseLoss(std::move(differences), std::move(penalties)).minimum(std::move(start));
  }

  /// Every fifth example is held out in turn. Of penalties that rank as well the largest.
  double best_penalty(const std::vector<Example>& examples) {
    constexpr std::size_t kFolds = 5;
    double best = options_.penalties.back();
    double most = -1.0;
    for (const double penalty : options_.penalties) {
      double right = 0.0;
      for (std::size_t fold = 0; fold < kFolds; ++fold) {
        std::vector<Example> known;
        std::vector<Example> held;
        for (std::size_t i = 0; i < examples.size(); ++i) (i % kFolds == fold ? held : known).push_back(examples[i]);
        if (known.size() < 2 || held.size() < 2) continue;
        fit(known, penalty);
        std::vector<double> scores;
        for (const Example& example : held) scores.push_back(score(example.features));
        right += pairwise_accuracy(held, scores);
      }
      if (right < most) continue;
      most = right;
      best = penalty;
    }
    return best;
  }

  LinearRankerOptions options_;
  std::optional<Standardization> scale_;
  VectorXd weights_;
};

}  // namespace

std::unique_ptr<Ranker> linear_ranker(LinearRankerOptions options) {
  return std::make_unique<LinearRanker>(std::move(options));
}

}  // namespace simsync
