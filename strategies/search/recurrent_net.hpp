// A recurrent network over the variables of a model, with its gradient. Private to strategies/search.
#pragma once
#include <Eigen/Dense>
#include <vector>

namespace simsync::detail {

/// Strategies of one model: `steps` variables each.
struct Sequences {
  Eigen::Index steps = 0;
  Eigen::MatrixXd shards;           ///< features x shards of all strategies
  std::vector<Eigen::Index> owner;  ///< of each shard: variable * strategies + strategy
  Eigen::MatrixXd whole;            ///< features x strategies: of a strategy as a whole
};

/// Each shard goes through a layer; a variable is the sum of its shards; a gated recurrent unit (GRU) goes through the
/// variables in the order of the model and another one against it; the score is a weighted sum of both last states and
/// of the features of the strategy as a whole. After AutoSync's RankRNN, with a tenth of its width for 200 examples.
class RecurrentNet {
public:
  static constexpr Eigen::Index kHidden = 8;
  RecurrentNet(Eigen::Index shard_features, Eigen::Index whole_features);

  /// How many numbers the network is.
  [[nodiscard]] Eigen::Index size() const { return size_; }
  /// Where in these numbers the weights of the features of a strategy as a whole begin.
  [[nodiscard]] Eigen::Index whole_weights() const { return size_ - whole_; }
  [[nodiscard]] Eigen::VectorXd scores(const Eigen::VectorXd& numbers, const Sequences& sequences) const;
  /// Of a loss by the numbers, from its derivatives by the scores.
  [[nodiscard]] Eigen::VectorXd gradient(const Eigen::VectorXd& numbers, const Sequences& sequences,
                                         const Eigen::VectorXd& by_score) const;

private:
  Eigen::Index shard_;
  Eigen::Index whole_;
  Eigen::Index size_;
};

}  // namespace simsync::detail
