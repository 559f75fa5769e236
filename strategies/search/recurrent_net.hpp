// A recurrent network over the segments of a model, with its gradient. Private to strategies/search.
#pragma once
#include <Eigen/Dense>

namespace simsync::detail {

/// Strategies as the network sees them.
struct Sequences {
  Eigen::Index steps = 0;    ///< segments of a strategy
  Eigen::MatrixXd segments;  ///< features x (segment * strategies + strategy)
  Eigen::MatrixXd whole;     ///< features x strategies: of a strategy as a whole
};

/// Each segment goes through a layer; a gated recurrent unit (GRU, Cho et al. 2014) goes through the segments in the
/// order of the model and another one against it; the score is a weighted sum of both last states and of the features
/// of the strategy as a whole. After AutoSync's RankRNN, with a sixteenth of its width for 200 examples.
class RecurrentNet {
public:
  static constexpr Eigen::Index kHidden = 8;
  RecurrentNet(Eigen::Index segment_features, Eigen::Index whole_features);

  /// How many numbers the network is.
  [[nodiscard]] Eigen::Index size() const { return size_; }
  /// Where in these numbers the weights of the features of a strategy as a whole begin: they are the last.
  [[nodiscard]] Eigen::Index whole_weights() const { return size_ - whole_; }
  [[nodiscard]] Eigen::VectorXd scores(const Eigen::VectorXd& numbers, const Sequences& sequences) const;
  /// Of a loss by the numbers, from its derivatives by the scores.
  [[nodiscard]] Eigen::VectorXd gradient(const Eigen::VectorXd& numbers, const Sequences& sequences,
                                         const Eigen::VectorXd& by_score) const;

private:
  Eigen::Index segment_;
  Eigen::Index whole_;
  Eigen::Index size_;
};

}  // namespace simsync::detail
