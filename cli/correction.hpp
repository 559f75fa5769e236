// What real runs taught of predictions: --correction of predict and sweep, and how calibrate learns one.
#pragma once
#include <string>
#include <vector>

#include "sim/engine/predict.hpp"
#include "strategies/search/correction.hpp"
#include "validate/calibrate/readers.hpp"

namespace simsync {

/// The corrections of a file, for the rows of a command.
class RowCorrection {
public:
  /// @throws InputError for what is no correction.
  explicit RowCorrection(const std::string& file);

  /// Corrects step, interval and what follows from them. @throws PlanError for strategies whose workers do not wait
  /// for each other: a correction knows steps that are alike.
  StepFactor apply(const Problem& problem, PredictedRow& row) const;
  /// `+12.0 % by what 20 runs of resnet50 on testbed taught`.
  [[nodiscard]] std::string text(const StepFactor& factor) const;
  /// Of the cluster and the models that it was learned on, where these are others.
  [[nodiscard]] std::vector<std::string> notes(const Problem& problem) const;

private:
  std::string file_;
  SavedCorrection saved_;
};

/// Whether the file is a table of trials, as 'simsync search --csv' writes it.
bool is_trial_table(const std::string& file);
/// Learns from the rows of tables of measured trials that pass all filters, writes the correction to `out` unless that
/// is empty, and prints what it is worth. @throws InputError for trials that are not measured, and for fewer than two.
void learn_correction_of(const std::vector<std::string>& tables, const std::vector<ColumnFilter>& where,
                         const std::string& out);

}  // namespace simsync
