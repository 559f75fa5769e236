// The recurrent network of a ranker, and its gradient.
#include "base/random.hpp"
#include "strategies/search/recurrent_net.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;
using detail::RecurrentNet;
using detail::Sequences;

namespace {

Eigen::MatrixXd drawn(Eigen::Index rows, Eigen::Index columns, Random& random) {
  Eigen::MatrixXd out(rows, columns);
  for (Eigen::Index i = 0; i < out.size(); ++i) out.data()[i] = 2.0 * random.unit() - 1.0;
  return out;
}

/// Two strategies of three variables; some variables have two shards.
Sequences two_strategies(Random& random) {
  return {.steps = 3,
          .shards = drawn(4, 8, random),
          .owner = {0, 1, 2, 3, 4, 5, 0, 3},  // variable * 2 + strategy
          .whole = drawn(2, 2, random)};
}

}  // namespace

TEST_CASE("the gradient of the recurrent network is the slope of its loss", "[search]") {
  Random random(5);
  const Sequences sequences = two_strategies(random);
  const RecurrentNet net(4, 2);
  Eigen::VectorXd numbers = drawn(net.size(), 1, random);
  const Eigen::Vector2d weights(0.7, -1.3);  // the loss is a weighted sum of both scores
  const Eigen::VectorXd gradient = net.gradient(numbers, sequences, weights);
  constexpr double kStep = 1e-6;
  for (Eigen::Index i = 0; i < net.size(); ++i) {
    const double at = numbers[i];
    numbers[i] = at + kStep;
    const double above = weights.dot(net.scores(numbers, sequences));
    numbers[i] = at - kStep;
    const double below = weights.dot(net.scores(numbers, sequences));
    numbers[i] = at;
    CAPTURE(i);
    CHECK_THAT(gradient[i], WithinAbs((above - below) / (2.0 * kStep), 1e-7));
  }
}

TEST_CASE("the recurrent network knows the order of variables, and none of their shards", "[search]") {
  Random random(6);
  Sequences sequences = two_strategies(random);
  const RecurrentNet net(4, 2);
  const Eigen::VectorXd numbers = drawn(net.size(), 1, random);
  const Eigen::VectorXd before = net.scores(numbers, sequences);
  // The first variable of the first strategy has shards 0 and 6.
  sequences.shards.col(0).swap(sequences.shards.col(6));
  CHECK((net.scores(numbers, sequences) - before).norm() < 1e-12);
  // Its first and its last variable.
  sequences.shards.col(0).swap(sequences.shards.col(4));
  CHECK(std::abs((net.scores(numbers, sequences) - before)[0]) > 1e-6);
}
