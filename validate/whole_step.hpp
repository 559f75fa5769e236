// The compute of a worker, from a measured step that holds what servers and network had of it. Private to this folder.
#pragma once
#include <string>
#include <unordered_map>

#include "validate/predictor.hpp"

namespace simsync::detail {

/// Keeps what it has found: the cases of a study share few such steps.
class WholeSteps {
public:
  explicit WholeSteps(Predictor& predictor) : predictor_(predictor) {}
  /// `step_time` with which the predicted step of `request` is `measured`, within 0.1 %; next to none where what is not
  /// compute takes longer already. Cost: some 3 to 12 predictions.
  Seconds compute(const PredictRequest& request, Seconds measured);

private:
  Seconds search(PredictRequest request, Seconds measured);

  Predictor& predictor_;
  std::unordered_map<std::string, Seconds> known_;
};

}  // namespace simsync::detail
