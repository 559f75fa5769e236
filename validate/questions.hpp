// Cases as questions to a predictor, with what was fitted so far. Private to this folder.
#pragma once
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "validate/cases.hpp"
#include "validate/whole_step.hpp"

namespace simsync::detail {

/// Cells of some columns, and the cases that have all of them.
struct Cells {
  std::vector<std::pair<std::string, std::string>> cells;  ///< column and its text
  [[nodiscard]] bool hold(const CsvTable& table, std::size_t row) const {
    return std::all_of(cells.begin(), cells.end(),
                       [&](const auto& cell) { return table.cell(row, cell.first) == cell.second; });
  }
  /// `model=vgg16, gpu=T4`
  [[nodiscard]] std::string text() const;
};

/// A fitted value and the cases that it is set for.
struct SetValue {
  const FitParameter* parameter;
  std::string text = {};
  std::size_t index = 0;    ///< of StudyResult::parameters
  bool everywhere = false;  ///< while it is fitted to cases that others are left out of
  Cells only = {};          ///< of those that `parameter` names, these

  [[nodiscard]] bool is_for(const Study& study, const Case& c) const {
    if (everywhere) return true;
    return parameter->rows.takes(study.table, c.row) && only.hold(study.table, c.row);
  }
};

/// Errors of its answers name the case.
class Questions {
public:
  /// Keeps references to all three.
  Questions(const Study& study, const std::vector<Case>& cases, Predictor& predictor)
      : study_(study), cases_(cases), predictor_(predictor), whole_steps_(predictor) {}

  [[nodiscard]] const Case& case_of_row(std::size_t row) const;
  /// The question of a case with these values, and with the compute that a whole step leaves where the study says so.
  PredictRequest question(const Case& c, const std::vector<SetValue>& values);
  /// @throws PlanError also where the answer is no time.
  Seconds answer(const Case& c, const PredictRequest& question);
  /// The same with its interval, which takes longer.
  Answer answer_with_interval(const Case& c, const PredictRequest& question);
  /// What the resource that all workers wait for takes of a step.
  Seconds saturated(const Case& c, const std::vector<SetValue>& values);

private:
  [[nodiscard]] PredictRequest request(const Case& c, const std::vector<SetValue>& values) const;

  const Study& study_;
  const std::vector<Case>& cases_;
  Predictor& predictor_;
  WholeSteps whole_steps_;
};

}  // namespace simsync::detail
