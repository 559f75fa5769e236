#include "strategies/search/recurrent_net.hpp"

#include <utility>

namespace simsync::detail {
namespace {

using Eigen::Index;
using Eigen::Map;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr Index kHidden = RecurrentNet::kHidden;
constexpr Index kGates = 3;  ///< update, reset, new state

MatrixXd sigmoid(const MatrixXd& x) {
  return (1.0 + (-x.array()).exp()).inverse().matrix();
}

/// Numbers as matrices, one after the other.
template <class Vector, class Matrix>
class Reader {
public:
  explicit Reader(Vector& numbers) : numbers_(numbers) {}
  Map<Matrix> next(Index rows, Index columns) {
    auto* const at = numbers_.data() + at_;
    at_ += rows * columns;
    return {at, rows, columns};
  }

private:
  Vector& numbers_;
  Index at_ = 0;
};

template <class Matrix>
struct Cell {
  Map<Matrix> input;      ///< gates one below the other
  Map<Matrix> recurrent;  ///< the same
  Map<Matrix> bias;
};

template <class Vector, class Matrix>
struct Parts {
  Reader<Vector, Matrix> reader;
  Map<Matrix> layer;
  Map<Matrix> layer_bias;
  Cell<Matrix> onward;
  Cell<Matrix> back;
  Map<Matrix> head;   ///< of both last states
  Map<Matrix> whole;  ///< of the features of the strategy as a whole

  Parts(Vector& numbers, Index segment_features, Index whole_features)
      : reader(numbers),
        layer(reader.next(kHidden, segment_features)),
        layer_bias(reader.next(kHidden, 1)),
        onward(cell()),
        back(cell()),
        head(reader.next(2 * kHidden, 1)),
        whole(reader.next(whole_features, 1)) {}

private:
  Cell<Matrix> cell() {
    auto input = reader.next(kGates * kHidden, kHidden);
    auto recurrent = reader.next(kGates * kHidden, kHidden);
    return {input, recurrent, reader.next(kGates * kHidden, 1)};
  }
};

using Numbers = Parts<const VectorXd, const MatrixXd>;
using Slopes = Parts<VectorXd, MatrixXd>;

/// What a pass over one segment leaves for the way back.
struct Step {
  MatrixXd before;    ///< the state
  MatrixXd update;    ///< z
  MatrixXd reset;     ///< r
  MatrixXd recalled;  ///< U_n h
  MatrixXd fresh;     ///< n
};

/// One direction. x: hidden x (segments * strategies).
class Unit {
public:
  Unit(const Cell<const MatrixXd>& cell, const MatrixXd& x, Index steps, bool is_back)
      : cell_(cell), x_(x), steps_(steps), count_(x.cols() / steps), is_back_(is_back) {
    state_ = MatrixXd::Zero(kHidden, count_);
    for (Index i = 0; i < steps_; ++i) forward(i);
  }
  [[nodiscard]] const MatrixXd& last() const { return state_; }

  void backward(MatrixXd by_state, const Cell<MatrixXd>& slopes_of, MatrixXd& by_x) const {
    Cell<MatrixXd> slopes = slopes_of;
    for (Index i = steps_; i-- > 0;) {
      const Step& step = kept_[static_cast<std::size_t>(i)];
      const auto z = step.update.array();
      const auto r = step.reset.array();
      MatrixXd gates(kGates * kHidden, count_);  // by what goes into each of them
      gates.topRows(kHidden) = by_state.array() * (step.before - step.fresh).array() * z * (1.0 - z);
      const MatrixXd fresh = by_state.array() * (1.0 - z) * (1.0 - step.fresh.array().square());
      gates.middleRows(kHidden, kHidden) = fresh.array() * step.recalled.array() * r * (1.0 - r);
      gates.bottomRows(kHidden) = fresh;
      slopes.input += gates * at(i).transpose();
      slopes.bias += gates.rowwise().sum();
      by_x.middleCols(column(i), count_) += cell_.input.transpose() * gates;
      // The state goes into the fresh one behind the reset gate.
      gates.bottomRows(kHidden) = fresh.array() * r;
      slopes.recurrent += gates * step.before.transpose();
      by_state = (by_state.array() * z).matrix() + cell_.recurrent.transpose() * gates;
    }
  }

private:
  [[nodiscard]] Index column(Index i) const { return (is_back_ ? steps_ - 1 - i : i) * count_; }
  [[nodiscard]] MatrixXd at(Index i) const { return x_.middleCols(column(i), count_); }

  void forward(Index i) {
    const MatrixXd in = (cell_.input * at(i)).colwise() + cell_.bias.col(0);
    const MatrixXd recalled = cell_.recurrent * state_;
    Step step;
    step.before = state_;
    step.update = sigmoid(in.topRows(kHidden) + recalled.topRows(kHidden));
    step.reset = sigmoid(in.middleRows(kHidden, kHidden) + recalled.middleRows(kHidden, kHidden));
    step.recalled = recalled.bottomRows(kHidden);
    step.fresh = (in.bottomRows(kHidden).array() + step.reset.array() * step.recalled.array()).tanh();
    state_ = (1.0 - step.update.array()) * step.fresh.array() + step.update.array() * state_.array();
    kept_.push_back(std::move(step));
  }

  const Cell<const MatrixXd>& cell_;
  const MatrixXd& x_;
  Index steps_;
  Index count_;
  bool is_back_;
  MatrixXd state_;
  std::vector<Step> kept_;
};

/// What comes out of the layer for each segment.
MatrixXd layered(const Numbers& net, const Sequences& sequences) {
  return ((net.layer * sequences.segments).colwise() + net.layer_bias.col(0)).array().tanh();
}

}  // namespace

RecurrentNet::RecurrentNet(Index segment_features, Index whole_features)
    : segment_(segment_features),
      whole_(whole_features),
      size_(kHidden * (segment_features + 1) + 2 * kGates * kHidden * (2 * kHidden + 1) + 2 * kHidden +
            whole_features) {}

VectorXd RecurrentNet::scores(const VectorXd& numbers, const Sequences& sequences) const {
  const Numbers net(numbers, segment_, whole_);
  const MatrixXd x = layered(net, sequences);
  const Unit onward(net.onward, x, sequences.steps, false);
  const Unit back(net.back, x, sequences.steps, true);
  return onward.last().transpose() * net.head.topRows(kHidden) +
         back.last().transpose() * net.head.bottomRows(kHidden) + sequences.whole.transpose() * net.whole;
}

VectorXd RecurrentNet::gradient(const VectorXd& numbers, const Sequences& sequences, const VectorXd& by_score) const {
  const Numbers net(numbers, segment_, whole_);
  VectorXd out = VectorXd::Zero(size_);
  Slopes slopes(out, segment_, whole_);
  const MatrixXd x = layered(net, sequences);
  const Unit onward(net.onward, x, sequences.steps, false);
  const Unit back(net.back, x, sequences.steps, true);
  slopes.head.topRows(kHidden) = onward.last() * by_score;
  slopes.head.bottomRows(kHidden) = back.last() * by_score;
  slopes.whole = sequences.whole * by_score;
  MatrixXd by_x = MatrixXd::Zero(x.rows(), x.cols());
  onward.backward(net.head.topRows(kHidden) * by_score.transpose(), slopes.onward, by_x);
  back.backward(net.head.bottomRows(kHidden) * by_score.transpose(), slopes.back, by_x);
  by_x.array() *= 1.0 - x.array().square();
  slopes.layer = by_x * sequences.segments.transpose();
  slopes.layer_bias = by_x.rowwise().sum();
  return out;
}

}  // namespace simsync::detail
