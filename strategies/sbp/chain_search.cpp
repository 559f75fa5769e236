#include "strategies/sbp/chain_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace simsync {
namespace {

bool all_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

std::size_t index(int value) {
  return static_cast<std::size_t>(value);
}

}  // namespace

void check(const ChainCosts& costs) {
  if (costs.nodes.empty()) throw PlanError("a chain without layers: expected at least one");
  if (costs.edges.size() + 1 != costs.nodes.size())
    throw PlanError(fmt::format("a chain of {} layers has {} tables of edges: expected {}", costs.nodes.size(),
                                costs.edges.size(), costs.nodes.size() - 1));
  for (std::size_t l = 0; l < costs.nodes.size(); ++l) {
    if (costs.nodes[l].empty()) throw PlanError(fmt::format("layer {} of a chain has no candidate", l));
    if (!all_finite(costs.nodes[l])) throw PlanError(fmt::format("a cost of layer {} is not a finite number", l));
  }
  for (std::size_t l = 0; l < costs.edges.size(); ++l) {
    const std::size_t rows = costs.nodes[l].size();
    const std::size_t columns = costs.nodes[l + 1].size();
    const auto is_row = [&](const std::vector<double>& row) { return row.size() == columns && all_finite(row); };
    if (costs.edges[l].size() != rows || !std::all_of(costs.edges[l].begin(), costs.edges[l].end(), is_row))
      throw PlanError(fmt::format("edges from layer {} of a chain: expected {} x {} finite costs", l, rows, columns));
  }
}

double chain_cost(const ChainCosts& costs, const ChainChoice& choice) {
  if (choice.size() != costs.nodes.size())
    throw PlanError(
        fmt::format("a choice for {} layers of a chain of {}: expected as many", choice.size(), costs.nodes.size()));
  double total = 0.0;
  for (std::size_t l = 0; l < choice.size(); ++l) {
    if (choice[l] < 0 || index(choice[l]) >= costs.nodes[l].size())
      throw PlanError(
          fmt::format("candidate {} of layer {}: expected one of 0 to {}", choice[l], l, costs.nodes[l].size() - 1));
    total += costs.nodes[l][index(choice[l])];
    if (l > 0) total += costs.edges[l - 1][index(choice[l - 1])][index(choice[l])];
  }
  return total;
}

ChainResult chain_optimum(const ChainCosts& costs) {
  check(costs);
  ChainResult out;
  std::vector<double> least = costs.nodes.front();  // of all layers up to this one, by its candidate
  std::vector<std::vector<int>> before;             // by layer but the first and candidate: the one before it
  for (std::size_t l = 1; l < costs.nodes.size(); ++l) {
    std::vector<double> next(costs.nodes[l].size());
    std::vector<int> from(next.size(), 0);
    for (std::size_t c = 0; c < next.size(); ++c) {
      const auto through = [&](std::size_t b) { return least[b] + costs.edges[l - 1][b][c]; };
      for (std::size_t b = 1; b < least.size(); ++b)
        if (through(b) < through(index(from[c]))) from[c] = static_cast<int>(b);
      next[c] = through(index(from[c])) + costs.nodes[l][c];
      out.evaluated += static_cast<std::int64_t>(least.size());
    }
    least = std::move(next);
    before.push_back(std::move(from));
  }
  out.choice.assign(costs.nodes.size(), 0);
  out.choice.back() = static_cast<int>(std::min_element(least.begin(), least.end()) - least.begin());
  for (std::size_t l = costs.nodes.size() - 1; l > 0; --l) out.choice[l - 1] = before[l - 1][index(out.choice[l])];
  out.cost = chain_cost(costs, out.choice);
  return out;
}

ChainResult chain_exhaustive(const ChainCosts& costs) {
  check(costs);
  double choices = 1.0;
  for (const auto& candidates : costs.nodes) choices *= static_cast<double>(candidates.size());
  if (choices > kMostChainChoices)
    throw PlanError(fmt::format("a chain has {:.3g} choices: expected at most {:.3g} to look at all of them", choices,
                                kMostChainChoices));
  ChainResult out;
  ChainChoice choice(costs.nodes.size(), 0);
  for (;;) {
    const double cost = chain_cost(costs, choice);
    if (out.evaluated++ == 0 || cost < out.cost) {
      out.cost = cost;
      out.choice = choice;
    }
    std::size_t l = choice.size();
    while (l > 0 && index(choice[l - 1]) + 1 == costs.nodes[l - 1].size()) choice[--l] = 0;
    if (l == 0) return out;
    ++choice[l - 1];
  }
}

}  // namespace simsync
