// Who answers what a step takes: the engine, or a fake in tests.
#pragma once
#include <optional>

#include "base/units.hpp"
#include "sim/engine/interval.hpp"
#include "sim/engine/predict.hpp"
#include "sim/plan/closed_network.hpp"

namespace simsync {

/// A step, and between what 90 % of such steps are expected.
struct Answer {
  Seconds step;
  std::optional<StepInterval> interval;  ///< absent: not known
};

class Predictor {
public:
  virtual ~Predictor() = default;
  /// @throws InputError, PlanError as predict() does.
  virtual Seconds step_time(const PredictRequest& request) = 0;
  /// The same with its interval, which takes longer. @throws as step_time() does.
  virtual Answer answer(const PredictRequest& request) { return {step_time(request), std::nullopt}; }
  /// What a round of one asynchronous worker goes through. @throws besides these PlanError where there is no closed
  /// form.
  virtual ClosedNetwork network(const PredictRequest& request);
};

/// Calls predict() for every question; files are read once.
class EnginePredictor : public Predictor {
public:
  Seconds step_time(const PredictRequest& request) override;
  Answer answer(const PredictRequest& request) override;
  ClosedNetwork network(const PredictRequest& request) override;

protected:
  Inputs& inputs() { return inputs_; }

private:
  Inputs inputs_;
};

}  // namespace simsync
