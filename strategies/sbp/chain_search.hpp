// The cheapest choice of a candidate for each layer of a chain, where neighbors' choices cost together.
#pragma once
#include <cstdint>
#include <vector>

namespace simsync {

/// Costs of a chain, in any one unit; all of them finite. A layer has one candidate at least.
struct ChainCosts {
  /// By layer and candidate: what the candidate costs by itself.
  std::vector<std::vector<double>> nodes;
  /// By layer but the last, its candidate and the next layer's candidate: what the two cost together.
  std::vector<std::vector<std::vector<double>>> edges;
  [[nodiscard]] int layers() const { return static_cast<int>(nodes.size()); }
};
/// @throws PlanError when tables are missing, of the wrong size or not finite.
void check(const ChainCosts& costs);

/// By layer its candidate.
using ChainChoice = std::vector<int>;
/// Sum of the chosen nodes and edges. @throws PlanError when the choice is not one of the chain's.
double chain_cost(const ChainCosts& costs, const ChainChoice& choice);

struct ChainResult {
  ChainChoice choice;
  double cost = 0.0;           ///< `chain_cost` of the choice
  std::int64_t evaluated = 0;  ///< what the search has computed the cost of; each says of what
};

/// The optimum, by dynamic programming from the first layer to the last: O(layers x candidates^2). Of equally cheap
/// choices some one, always the same. Evaluated: pairs of neighboring candidates.
ChainResult chain_optimum(const ChainCosts& costs);

inline constexpr double kMostChainChoices = 1e7;
/// The optimum, by looking at all choices; of equally cheap ones the first. Evaluated: choices.
/// @throws PlanError when there are more than kMostChainChoices.
ChainResult chain_exhaustive(const ChainCosts& costs);

struct DescentOptions {
  /// Where the first descent begins; empty: candidate 0 of each layer, which is data parallelism where there is such a
  /// candidate (`linear_chain`).
  ChainChoice start;
  /// Further descents, each from a choice that is drawn uniformly.
  int restarts = 0;
  std::uint64_t seed = 1;
  /// By layer a number; layers of one number first take one candidate together, such as the same layer of all blocks of
  /// a Transformer. Then each goes its own way. They must have as many candidates. Empty: none are tied.
  std::vector<int> ties;
};
/// Coordinate descent, as AutoDDL searches (Chen et al., "AutoDDL: Automatic Distributed Deep Learning with
/// Near-Optimal Bandwidth Cost", IEEE TPDS 2024). One layer after another takes the candidate that is cheapest with the
/// others as they are, until a sweep changes nothing; a trial looks at the layer and its two edges only. Improvements
/// below 1e-12 of what is improved count as none (OneFlow's threshold), so that it ends. The result costs as much as
/// its start or less, but it need not be the optimum: two neighbors that would have to change together stay as they
/// are. Evaluated: candidates of one layer, or of one group of tied layers, with the others as they are.
/// @throws PlanError for a start or ties that are not of this chain, or restarts below 0.
ChainResult coordinate_descent(const ChainCosts& costs, const DescentOptions& options = {});

struct AnnealingOptions {
  ChainChoice start;               ///< empty: candidate 0 of each layer
  std::int64_t trials = 10'000;    ///< changes of one layer that are tried
  double first_temperature = 1.0;  ///< of the start's cost per layer
  double last_temperature = 1e-4;  ///< likewise; the temperature falls by one factor per trial
  std::uint64_t seed = 1;
};
/// Simulated annealing, for comparison: one layer's candidate is drawn, and a change for the worse by d is kept with
/// probability exp(-d / temperature). FlexFlow searches so (Jia et al., "Beyond data and model parallelism for deep
/// neural networks", MLSys 2019). The best choice on the way is the result. Evaluated: trials.
/// @throws PlanError for a start that is not of this chain, or a temperature that is not above 0.
ChainResult chain_annealing(const ChainCosts& costs, const AnnealingOptions& options = {});

}  // namespace simsync
