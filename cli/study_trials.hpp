// Published studies and corrections: cases as measured trials, and predictions that are corrected.
#pragma once
#include <string>

#include "cli/correction.hpp"
#include "validate/evaluate.hpp"
#include "validate/predictor.hpp"

namespace simsync {

/// Corrects what a study is scored by. What a study fits is fitted to predictions as they are.
class CorrectedPredictor : public EnginePredictor {
public:
  /// @throws InputError for a file that is no correction.
  explicit CorrectedPredictor(const std::string& file) : correction_(file) {}
  Answer answer(const PredictRequest& given) override;

private:
  RowCorrection correction_;
};

/// A table of trials (trial_table.hpp): every case that has a prediction and whose workers wait for each other, those
/// that calibrate included, measured by whoever published it. `trial` counts the cases of the study, `origin` is the
/// case.
std::string trials_of(const StudyResult& result);

}  // namespace simsync
