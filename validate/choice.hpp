// Choosing a strategy by its prediction: which cases offer a choice, and what following the prediction costs.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/engine/interval.hpp"
#include "validate/cases.hpp"
#include "validate/metrics.hpp"

namespace simsync {

struct CaseResult {
  Case the_case;
  Seconds predicted;
  std::optional<StepInterval> interval;  ///< where the predictor tells one
  std::string failure;                   ///< why there is no prediction; empty when there is one
  PredictRequest asked;                  ///< the question with everything that was fitted for it
  std::vector<std::size_t> fitted;       ///< which of StudyResult::parameters are in `asked`
  /// Whether the measured step lies in the interval.
  [[nodiscard]] bool covered() const {
    return interval && interval->low <= the_case.measured && the_case.measured <= interval->high;
  }
  [[nodiscard]] Sample sample() const { return {the_case.rank_group, the_case.measured, predicted}; }
};

/// Why two cases of one rank group are no choice between strategies; of several reasons the first.
enum class NoChoice { OtherJob, OtherSettings, OtherCompute, OtherFit, SameStrategy };
inline constexpr std::array<NoChoice, 5> kNoChoices{NoChoice::OtherJob, NoChoice::OtherSettings, NoChoice::OtherCompute,
                                                    NoChoice::OtherFit, NoChoice::SameStrategy};
/// Column of the summary that counts such pairs.
const char* column_of(NoChoice reason);
/// For people: "of other settings".
const char* text_of(NoChoice reason);

/// None when the pair is a choice between strategies for the same work.
std::optional<NoChoice> no_choice(const Case& a, const Case& b);

/// Cases of the same work under at least two strategies. Repeated runs of one strategy count as one, with their mean.
struct ChoiceGroup {
  std::string id;  ///< of its first case in the table
  std::string model;
  std::string cluster;
  int workers = 1;
  std::int64_t batch = 1;  ///< per worker
  std::size_t strategies = 0;
  std::vector<std::string> named;  ///< cases of the strategies that are predicted best: several when predictions tie
  std::vector<std::string> best;   ///< cases of the strategy that is measured best; of equal ones the first
  Seconds named_measured;          ///< mean over the tied strategies
  Seconds best_measured;
  [[nodiscard]] double regret_pct() const { return 100.0 * (named_measured / best_measured - 1.0); }
};

/// Over pairs of one rank group that only the strategy tells apart, and over groups of such cases.
struct Choices {
  Ranking ranking;
  std::array<std::size_t, kNoChoices.size()> left_out{};  ///< pairs, by NoChoice
  std::vector<ChoiceGroup> groups;                        ///< in the order of their first cases
};

/// `cases` are scored and have predictions. `tie_pct` as PairRanking takes it. Cost: O(n^2).
Choices choices(const std::vector<const CaseResult*>& cases, double tie_pct);

}  // namespace simsync
