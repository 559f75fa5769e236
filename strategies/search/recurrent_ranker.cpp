#include "strategies/search/recurrent_ranker.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"
#include "strategies/search/example_pairs.hpp"
#include "strategies/search/folds.hpp"
#include "strategies/search/recurrent_net.hpp"
#include "strategies/search/vectors.hpp"

namespace simsync::detail {
namespace {

using detail::as_values;
using detail::as_vector;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr std::size_t kMostPairs = 5'000;
constexpr int kSteps = 100;     ///< of Adam, each on all pairs
constexpr double kRate = 0.01;  ///< its step
/// Of the squared distance of the network's numbers from where they began, beside the mean loss of a pair. Of several
/// the first that ranks as well as the best in a cross-validation; the largest leaves the linear ranker as it is.
constexpr double kPenalties[] = {10.0, 0.1, 0.01};

/// Adam with its authors' constants.
class Adam {
public:
  explicit Adam(Index size) : mean_(VectorXd::Zero(size)), square_(VectorXd::Zero(size)) {}
  void step(VectorXd& numbers, const VectorXd& gradient) {
    constexpr double kMeanDecay = 0.9;
    constexpr double kSquareDecay = 0.999;
    constexpr double kTiny = 1e-8;
    mean_ = kMeanDecay * mean_ + (1.0 - kMeanDecay) * gradient;
    square_ = kSquareDecay * square_ + (1.0 - kSquareDecay) * gradient.cwiseAbs2();
    mean_left_ *= kMeanDecay;
    square_left_ *= kSquareDecay;
    const double scale = kRate / (1.0 - mean_left_);
    numbers.array() -= scale * mean_.array() / ((square_.array() / (1.0 - square_left_)).sqrt() + kTiny);
  }

private:
  VectorXd mean_;
  VectorXd square_;
  double mean_left_ = 1.0;
  double square_left_ = 1.0;
};

/// Mean and inverse standard deviation. A feature that never changes says nothing: 0.
struct Scale {
  VectorXd mean;
  VectorXd inverse;

  static Scale of(const MatrixXd& columns) {
    constexpr double kLeast = 1e-9;
    Scale out;
    out.mean = columns.rowwise().mean();
    const Eigen::ArrayXd deviation = ((columns.colwise() - out.mean).cwiseAbs2().rowwise().mean()).cwiseSqrt().array();
    out.inverse = (deviation > kLeast).select(deviation.max(kLeast).inverse(), 0.0);
    return out;
  }
  [[nodiscard]] MatrixXd scaled(const MatrixXd& columns) const {
    return inverse.asDiagonal() * (columns.colwise() - mean);
  }
};

class RecurrentRanker final : public LearningRanker {
public:
  explicit RecurrentRanker(const RecurrentFeatures& features, LinearRankerOptions linear = {})
      : features_(features), linear_options_(with_prior(std::move(linear), features)) {
    SIMSYNC_ASSERT(features.segments >= 1 && features.prior < features.whole);
  }

  void fit(const std::vector<Example>& examples) override {
    SIMSYNC_ASSERT(examples.size() >= 2);
    start(examples);
    learn(examples, best_penalty(examples));
  }

  [[nodiscard]] double score(const std::vector<double>& features) const override {
    SIMSYNC_ASSERT(numbers_.size() > 0);
    const Sequences sequences = sequences_of({{.features = features}});
    return net_of(sequences).scores(numbers_, sequences)[0];
  }

  [[nodiscard]] nlohmann::json weights() const override {
    SIMSYNC_ASSERT(numbers_.size() > 0);
    return {{"linear", linear_->weights()},
            {"hidden", RecurrentNet::kHidden},
            {"segment", {{"mean", as_values(scale_.mean)}, {"inverse_deviation", as_values(scale_.inverse)}}},
            {"numbers", as_values(numbers_)}};
  }

  [[nodiscard]] bool restore(const nlohmann::json& weights, std::size_t features) override {
    if (weights.at("hidden") != RecurrentNet::kHidden || features <= features_.whole) return false;
    auto linear = linear_ranker(linear_options_);
    if (!linear->restore(weights.at("linear"), features_.whole)) return false;
    const auto width = static_cast<Index>((features - features_.whole) / static_cast<std::size_t>(features_.segments));
    const auto vector = [](const nlohmann::json& from) { return VectorXd(as_vector(from.get<std::vector<double>>())); };
    Scale scale{vector(weights.at("segment").at("mean")), vector(weights.at("segment").at("inverse_deviation"))};
    VectorXd numbers = vector(weights.at("numbers"));
    if (scale.mean.size() != width || scale.inverse.size() != width || numbers.size() != RecurrentNet(width, 1).size())
      return false;
    linear_ = std::move(linear);
    scale_ = std::move(scale);
    numbers_ = std::move(numbers);
    return true;
  }

private:
  static LinearRankerOptions with_prior(LinearRankerOptions options, const RecurrentFeatures& features) {
    options.prior = features.prior;
    return options;
  }

  static RecurrentNet net_of(const Sequences& sequences) { return {sequences.segments.rows(), sequences.whole.rows()}; }

  /// What the linear ranker sees of them.
  [[nodiscard]] std::vector<Example> wholes_of(std::vector<Example> examples) const {
    for (Example& example : examples) example.features.resize(features_.whole);
    return examples;
  }

  /// Segments as columns, unscaled.
  [[nodiscard]] MatrixXd segments_of(const std::vector<Example>& examples) const {
    const auto count = static_cast<Index>(examples.size());
    const auto whole = static_cast<Index>(features_.whole);
    const auto width = static_cast<Index>(examples.front().features.size()) - whole;
    SIMSYNC_ASSERT(width > 0 && width % features_.segments == 0);
    const Index segment = width / features_.segments;
    MatrixXd out(segment, features_.segments * count);
    for (Index i = 0; i < count; ++i) {
      const auto values = as_vector(examples[static_cast<std::size_t>(i)].features);
      SIMSYNC_ASSERT(values.size() == whole + width);
      for (Index s = 0; s < features_.segments; ++s)
        out.col(s * count + i) = values.segment(whole + s * segment, segment);
    }
    return out;
  }

  [[nodiscard]] Sequences sequences_of(const std::vector<Example>& examples) const {
    Sequences out{.steps = features_.segments,
                  .segments = scale_.scaled(segments_of(examples)),
                  .whole = MatrixXd(1, static_cast<Index>(examples.size()))};
    const std::vector<Example> wholes = wholes_of(examples);
    for (std::size_t i = 0; i < wholes.size(); ++i)
      out.whole(0, static_cast<Index>(i)) = linear_->score(wholes[i].features);
    return out;
  }

  /// The linear ranker alone: what the network adds to it begins with nothing, because its head does.
  void start(const std::vector<Example>& examples) {
    auto linear = linear_ranker(linear_options_);
    linear->fit(wholes_of(examples));
    linear_ = std::move(linear);
    const MatrixXd segments = segments_of(examples);
    scale_ = Scale::of(segments);
    const RecurrentNet net(segments.rows(), 1);
    Random random(1);
    const double reach = 1.0 / std::sqrt(static_cast<double>(RecurrentNet::kHidden));
    numbers_.resize(net.size());
    for (double& number : numbers_) number = reach * (2.0 * random.unit() - 1.0);
    numbers_.segment(net.whole_weights() - 2 * RecurrentNet::kHidden, 2 * RecurrentNet::kHidden).setZero();
    numbers_[net.whole_weights()] = 1.0;
  }

  /// Moves the network from where it is.
  void learn(const std::vector<Example>& examples, double penalty) {
    const Sequences sequences = sequences_of(examples);
    const RecurrentNet net = net_of(sequences);
    const std::vector<Pair> pairs = pairs_of(examples, kMostPairs);
    if (pairs.empty()) return;
    const VectorXd center = numbers_;
    Adam adam(net.size());
    for (int step = 0; step < kSteps; ++step) {
      const VectorXd scores = net.scores(numbers_, sequences);
      VectorXd by_score = VectorXd::Zero(scores.size());
      for (const auto& [slower, faster] : pairs) {
        const auto a = static_cast<Index>(slower);
        const auto b = static_cast<Index>(faster);
        const double wrong = 1.0 / (1.0 + std::exp(scores[a] - scores[b])) / static_cast<double>(pairs.size());
        by_score[a] -= wrong;
        by_score[b] += wrong;
      }
      VectorXd gradient = net.gradient(numbers_, sequences, by_score) + penalty * (numbers_ - center);
      gradient[net.whole_weights()] = 0.0;  // what the linear ranker says counts as it is
      adam.step(numbers_, gradient);
    }
  }

  /// Beside a linear ranker with a penalty in the middle of those that it would choose from: that takes a tenth of the
  /// time.
  [[nodiscard]] double best_penalty(const std::vector<Example>& examples) const {
    std::vector<std::vector<double>> accuracies(std::size(kPenalties));
    for (const Fold& fold : folds_of(examples)) {
      RecurrentRanker ranker(features_, {.penalties = {0.1}});
      ranker.start(fold.known);
      const VectorXd begin = ranker.numbers_;
      for (std::size_t i = 0; i < std::size(kPenalties); ++i) {
        ranker.numbers_ = begin;
        ranker.learn(fold.known, kPenalties[i]);
        accuracies[i].push_back(pairwise_accuracy(fold.held, ranker));
      }
    }
    return kPenalties[first_of_the_best(accuracies)];
  }

  RecurrentFeatures features_;
  LinearRankerOptions linear_options_;
  std::shared_ptr<const Ranker> linear_;  ///< of the strategy as a whole
  Scale scale_;                           ///< of segments
  VectorXd numbers_;                      ///< of the network
};

}  // namespace

std::unique_ptr<LearningRanker> recurrent_ranker(const RecurrentFeatures& features) {
  return std::make_unique<RecurrentRanker>(features);
}

}  // namespace simsync::detail
