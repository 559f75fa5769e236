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

  /// The question that the correction answers: about runs like those that it was learned from, where it is about their
  /// cluster. Trials of this program's own runner were predicted with the habits of that runner.
  [[nodiscard]] PredictRequest asked(PredictRequest request, Inputs& inputs) const;
  /// Corrects step, interval and what follows from them. Where there are notes(), the interval of the correction is not
  /// known to hold: it is made to cover that of the prediction, too. @throws PlanError for strategies whose workers do
  /// not wait for each other: a correction knows steps that are alike.
  StepFactor apply(const PredictRequest& request, const Problem& problem, PredictedRow& row) const;
  /// `+12.0 % by what 20 runs of resnet50 on testbed taught`.
  [[nodiscard]] std::string text(const StepFactor& factor) const;
  /// In what this prediction differs from those of the trials that it was learned from.
  [[nodiscard]] std::vector<std::string> notes(const PredictRequest& request, const Problem& problem) const;

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
