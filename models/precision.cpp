#include "models/precision.hpp"

namespace simsync {

bool has_half_activations(const std::string& precision) {
  return precision == "amp" || has_half_weights(precision);
}

bool has_half_weights(const std::string& precision) {
  return precision == "fp16" || precision == "bf16" || precision == "fp8";
}

}  // namespace simsync
