// How far a search of chains stays from the optimum, over many chains.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "strategies/sbp/chain_search.hpp"
#include "tests/support/catch.hpp"

namespace simsync::test {

/// Costs that differ by less count as equal: two ways of adding up the same ones.
inline constexpr double kEqualCosts = 1e-9;

class Gap {
public:
  void add(const ChainResult& result, double optimum) {
    ++chains_;
    const double gap = optimum == 0.0 ? result.cost : result.cost / optimum - 1.0;
    if (gap < -kEqualCosts) ++below_;
    if (gap < kEqualCosts) ++equal_;
    worst_ = std::max(worst_, gap);
    sum_ += gap;
    evaluated_ += result.evaluated;
  }
  /// Chains with less than the optimum.
  [[nodiscard]] int below() const { return below_; }
  [[nodiscard]] double share_equal() const { return static_cast<double>(equal_) / chains_; }
  [[nodiscard]] double worst() const { return worst_; }
  [[nodiscard]] std::string text() const {
    return fmt::format("equal {:.1f} %, worst +{:.1f} %, mean +{:.2f} %, {:.0f} candidates", 100.0 * share_equal(),
                       100.0 * worst_, 100.0 * sum_ / chains_, static_cast<double>(evaluated_) / chains_);
  }

private:
  int chains_ = 0;
  int below_ = 0;
  int equal_ = 0;
  double worst_ = 0.0;
  double sum_ = 0.0;
  std::int64_t evaluated_ = 0;
};

/// Descents with some numbers of restarts, and annealing, on the same chains.
class GapTable {
public:
  void add(const ChainCosts& costs) {
    const double optimum = chain_optimum(costs).cost;
    for (auto& [restarts, gap] : descents_)
      gap.add(coordinate_descent(costs, {.restarts = restarts, .seed = kSeed}), optimum);
    annealing_.add(chain_annealing(costs), optimum);
  }
  [[nodiscard]] const Gap& descent(int restarts) const { return descents_.at(restarts); }
  [[nodiscard]] const Gap& annealing() const { return annealing_; }
  [[nodiscard]] std::string text() const {
    std::string out;
    for (const auto& [restarts, gap] : descents_) out += fmt::format("\n{} restarts: {}", restarts, gap.text());
    return out + "\nannealing: " + annealing_.text();
  }

private:
  static constexpr std::uint64_t kSeed = 3;
  std::map<int, Gap> descents_{{0, {}}, {1, {}}, {5, {}}, {20, {}}, {100, {}}};
  Gap annealing_;
};

/// What holds of any chains: none below the optimum, and restarts only help.
inline void check_gaps(const GapTable& table) {
  double before = 0.0;
  for (const int restarts : {0, 1, 5, 20, 100}) {
    const Gap& gap = table.descent(restarts);
    CHECK(gap.below() == 0);
    CHECK(gap.share_equal() >= before);
    before = gap.share_equal();
  }
  CHECK(table.descent(100).worst() <= table.descent(0).worst());
  CHECK(table.annealing().below() == 0);
}

}  // namespace simsync::test
