// The recurrent ranker, its network, and the gradient of that.
#include <cmath>

#include "base/random.hpp"
#include "strategies/search/recurrent_net.hpp"
#include "strategies/search/recurrent_ranker.hpp"
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

/// Two strategies of three segments.
Sequences two_strategies(Random& random) {
  return {.steps = 3, .segments = drawn(4, 6, random), .whole = drawn(2, 2, random)};
}

/// Examples of three features of the whole and two of each of four segments. The step hangs on where the first of these
/// is large: late segments make it long, early ones short.
std::vector<Example> examples(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<Example> out;
  for (std::size_t i = 0; i < count; ++i) {
    Example example;
    for (int k = 0; k < 3 + 2 * 4; ++k) example.features.push_back(random.unit());
    const auto& x = example.features;
    example.step = std::exp(x[7] + x[9] - x[3] - x[5]);
    out.push_back(std::move(example));
  }
  return out;
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

TEST_CASE("the recurrent network knows the order of segments", "[search]") {
  Random random(6);
  Sequences sequences = two_strategies(random);
  const RecurrentNet net(4, 2);
  const Eigen::VectorXd numbers = drawn(net.size(), 1, random);
  const Eigen::VectorXd before = net.scores(numbers, sequences);
  sequences.segments.col(0).swap(sequences.segments.col(4));  // the first and the last of the first strategy
  const Eigen::VectorXd after = net.scores(numbers, sequences);
  CHECK(std::abs((after - before)[0]) > 1e-6);
  CHECK(after[1] == before[1]);
}

TEST_CASE("a recurrent ranker learns what happens where, and little of what a linear one sees is lost", "[search]") {
  const detail::RecurrentFeatures features{.whole = 3, .prior = 0, .segments = 4};
  const auto known = examples(150, 1);
  const auto others = examples(150, 2);
  const auto recurrent = detail::recurrent_ranker(features);
  recurrent->fit(known);
  CHECK(pairwise_accuracy(others, *recurrent) > 0.85);
  auto wholes = [](std::vector<Example> of) {
    for (Example& example : of) example.features.resize(3);
    return of;
  };
  const auto linear = linear_ranker({.prior = 0});
  linear->fit(wholes(known));
  CHECK(pairwise_accuracy(wholes(others), *linear) < 0.6);
  // Where the whole says all, the network stays out of the way.
  const auto by_first = [](std::vector<Example> of) {
    for (Example& example : of) example.step = std::exp(example.features[0]);
    return of;
  };
  recurrent->fit(by_first(known));
  CHECK(pairwise_accuracy(by_first(others), *recurrent) > 0.98);
}
