#include "validate/predictor.hpp"

namespace simsync {

Seconds EnginePredictor::step_time(const PredictRequest& request) {
  return predict(request).step_time;
}

}  // namespace simsync
