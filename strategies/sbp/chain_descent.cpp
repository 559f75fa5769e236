#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.hpp"
#include "base/random.hpp"
#include "strategies/sbp/chain_search.hpp"

namespace simsync {
namespace {

/// Layers that take one candidate, ascending.
using Coordinate = std::vector<int>;

std::size_t index(int value) {
  return static_cast<std::size_t>(value);
}

ChainChoice start_of(const ChainCosts& costs, const ChainChoice& start) {
  if (start.empty()) return ChainChoice(costs.nodes.size(), 0);
  (void)chain_cost(costs, start);  // throws for what is no choice
  return start;
}

/// A choice, and what changing some layers of it would cost.
class Walker {
public:
  Walker(const ChainCosts& costs, ChainChoice choice) : costs_(costs), choice_(std::move(choice)) {}

  [[nodiscard]] const ChainChoice& choice() const { return choice_; }
  [[nodiscard]] int at(int layer) const { return choice_[index(layer)]; }
  void set(const Coordinate& layers, int candidate) {
    for (const int layer : layers) choice_[index(layer)] = candidate;
  }
  /// Of these layers and all edges at them, with the choice as it is.
  [[nodiscard]] double local_cost(const Coordinate& layers) const {
    double total = 0.0;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const int layer = layers[i];
      total += costs_.nodes[index(layer)][index(at(layer))];
      if (layer > 0) total += edge(layer - 1);
      const bool next_counts_it = i + 1 < layers.size() && layers[i + 1] == layer + 1;
      if (layer + 1 < costs_.layers() && !next_counts_it) total += edge(layer);
    }
    return total;
  }

private:
  [[nodiscard]] double edge(int layer) const {
    return costs_.edges[index(layer)][index(at(layer))][index(at(layer + 1))];
  }

  const ChainCosts& costs_;
  ChainChoice choice_;
};

/// Gives the layers their cheapest candidate. Whether that changes anything for the better.
bool improve(Walker& walker, const Coordinate& layers, int candidates, std::int64_t& evaluated) {
  constexpr double kThreshold = 1e-12;  // OneFlow's, relative
  const ChainChoice before = walker.choice();
  const double cost_before = walker.local_cost(layers);
  int best = 0;
  double least = 0.0;
  for (int c = 0; c < candidates; ++c, ++evaluated) {
    walker.set(layers, c);
    const double cost = walker.local_cost(layers);
    if (c > 0 && cost >= least) continue;
    best = c;
    least = cost;
  }
  if (least < cost_before - kThreshold * std::abs(cost_before)) {
    walker.set(layers, best);
    return true;
  }
  for (const int layer : layers) walker.set({layer}, before[index(layer)]);
  return false;
}

void descend(Walker& walker, const ChainCosts& costs, const std::vector<Coordinate>& coordinates,
             std::int64_t& evaluated) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const Coordinate& layers : coordinates) {
      const auto candidates = static_cast<int>(costs.nodes[index(layers.front())].size());
      changed = improve(walker, layers, candidates, evaluated) || changed;
    }
  }
}

std::vector<Coordinate> single_layers(int layers) {
  std::vector<Coordinate> out;
  for (int layer = 0; layer < layers; ++layer) out.push_back({layer});
  return out;
}

/// In the order of their first layers.
std::vector<Coordinate> tied_layers(const ChainCosts& costs, const std::vector<int>& ties) {
  if (ties.size() != costs.nodes.size())
    throw PlanError(
        fmt::format("ties of {} layers for a chain of {}: expected as many", ties.size(), costs.nodes.size()));
  std::vector<Coordinate> out;
  std::map<int, std::size_t> positions;
  for (int layer = 0; layer < costs.layers(); ++layer) {
    const auto [found, is_new] = positions.emplace(ties[index(layer)], out.size());
    if (is_new) out.emplace_back();
    Coordinate& tied = out[found->second];
    tied.push_back(layer);
    const std::size_t first = costs.nodes[index(tied.front())].size();
    if (costs.nodes[index(layer)].size() != first)
      throw PlanError(fmt::format("tied layers {} and {} have {} and {} candidates: expected as many", tied.front(),
                                  layer, first, costs.nodes[index(layer)].size()));
  }
  return out;
}

}  // namespace

ChainResult coordinate_descent(const ChainCosts& costs, const DescentOptions& options) {
  check(costs);
  if (options.restarts < 0)
    throw PlanError(fmt::format("{} restarts of a descent: expected 0 or more", options.restarts));
  const std::vector<Coordinate> single = single_layers(costs.layers());
  const std::vector<Coordinate> tied = options.ties.empty() ? single : tied_layers(costs, options.ties);
  ChainResult out;
  for (int run = 0; run <= options.restarts; ++run) {
    Walker walker(costs, start_of(costs, options.start));
    if (run > 0) {
      Random random(stream_seed(options.seed, {static_cast<std::uint64_t>(run)}));
      for (const Coordinate& layers : tied)
        walker.set(layers, static_cast<int>(random.below(costs.nodes[index(layers.front())].size())));
    }
    if (!options.ties.empty()) descend(walker, costs, tied, out.evaluated);
    descend(walker, costs, single, out.evaluated);
    const double cost = chain_cost(costs, walker.choice());
    if (run > 0 && cost >= out.cost) continue;
    out.cost = cost;
    out.choice = walker.choice();
  }
  return out;
}

ChainResult chain_annealing(const ChainCosts& costs, const AnnealingOptions& options) {
  check(costs);
  if (!(options.first_temperature > 0.0) || !(options.last_temperature > 0.0))
    throw PlanError(fmt::format("annealing from temperature {} to {}: expected both above 0", options.first_temperature,
                                options.last_temperature));
  Walker walker(costs, start_of(costs, options.start));
  ChainResult out{.choice = walker.choice(), .cost = chain_cost(costs, walker.choice())};
  const double unit = std::abs(out.cost) / costs.layers();
  const double ratio = options.last_temperature / options.first_temperature;
  Random random(options.seed);
  double cost = out.cost;
  for (; out.evaluated < options.trials; ++out.evaluated) {
    const double progress = static_cast<double>(out.evaluated) / static_cast<double>(options.trials);
    const double temperature = unit * options.first_temperature * std::pow(ratio, progress);
    const Coordinate layer{static_cast<int>(random.below(costs.nodes.size()))};
    const int old = walker.at(layer.front());
    const double before = walker.local_cost(layer);
    walker.set(layer, static_cast<int>(random.below(costs.nodes[index(layer.front())].size())));
    const double worse = walker.local_cost(layer) - before;
    if (worse > 0.0 && random.unit() >= std::exp(-worse / temperature)) {
      walker.set(layer, old);
      continue;
    }
    cost += worse;
    if (cost >= out.cost) continue;
    out.cost = cost;
    out.choice = walker.choice();
  }
  out.cost = chain_cost(costs, out.choice);
  return out;
}

}  // namespace simsync
