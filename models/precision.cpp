#include "models/precision.hpp"

#include <algorithm>

namespace simsync {

bool has_half_activations(const std::string& precision) {
  return precision == "amp" || has_half_weights(precision);
}

bool has_half_weights(const std::string& precision) {
  return precision == "fp16" || precision == "bf16" || precision == "fp8";
}

double width_of(const Variable& variable, bool half) {
  constexpr double kHalf = 2.0;
  const auto own = static_cast<double>(size_of(variable.dtype));
  return half ? std::min(own, kHalf) : own;
}

double weight_width(const Variable& variable, const std::string& precision) {
  return width_of(variable, has_half_weights(precision));
}

double gradient_width(const Variable& variable, const std::string& precision, bool fp32_gradients) {
  constexpr double kFull = 4.0;
  return fp32_gradients ? kFull : weight_width(variable, precision);
}

}  // namespace simsync
