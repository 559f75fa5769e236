#include "validate/predictor.hpp"

namespace simsync {

Seconds EnginePredictor::step_time(const PredictRequest& request) {
  return predict(request, inputs_).step_time;
}

}  // namespace simsync
