// What of a case is its work, and what belongs to the strategy that does the work.
#pragma once
#include <string>
#include <vector>

#include "sim/problem/problem.hpp"
#include "validate/study.hpp"

namespace simsync {

/// A setting of a case, and whose it is.
struct CaseSetting {
  std::string key;
  std::string value;
  /// Written for a strategy: in the `set` of one, or by a rule that its column limits or gives the value of.
  bool for_strategy = false;

  /// Whether it tells strategies apart instead of work: options of the strategy always, and numbers of the cluster
  /// (keys with a dot, such as a link's) where they are written for a strategy, because the rate of a strategy's
  /// transport belongs to the strategy. Precision, placement, step_time and the like are work wherever they stand.
  [[nodiscard]] bool of_strategy() const;
};

/// Whether the rule is written for some strategies: it has a condition on the column that names the strategy, or takes
/// its value from there.
bool is_for_strategy(const Study& study, const SettingRule& rule);

/// Whether the field's value comes from the column that names the strategy.
bool is_for_strategy(const Study& study, const Field& field);

/// What two cases share when only the strategy and what belongs to it tell their questions apart. Four parts, so that
/// it can be said which one differs.
struct Workload {
  std::string job;       ///< model, cluster, batch and workers
  std::string settings;  ///< of the work, but for step_time; of a key that is set twice the last; and the calibration
  std::string
      compute;       ///< step_time, or the row whose step it follows from, and the cells of `calibrate.step_time.key`
  std::string fits;  ///< which fitted parameters are set for it
  friend bool operator==(const Workload&, const Workload&) = default;
};

/// The column that names the strategy is no part of `compute`. Conditions on it do not count in `settings` and `fits`,
/// other conditions of the same rule do: a number that is fitted, or set, for some strategies on one network makes
/// that network other work.
Workload workload_of(const Study& study, std::size_t row, const PredictRequest& request,
                     const std::vector<CaseSetting>& settings);

/// Name of the strategy, the settings and the calibration that are its own, and which of the parameters that are fitted
/// for some strategies are set for it.
std::string strategy_of(const Study& study, std::size_t row, const PredictRequest& request,
                        const std::vector<CaseSetting>& settings);

}  // namespace simsync
