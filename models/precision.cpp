#include "models/precision.hpp"

#include <algorithm>

namespace simsync {
namespace {

constexpr double kHalf = 2.0;  // bytes
constexpr double kFull = 4.0;

}  // namespace

bool has_half_activations(const std::string& precision) {
  return precision == "amp" || has_half_weights(precision);
}

bool has_half_weights(const std::string& precision) {
  return precision == "fp16" || precision == "bf16" || precision == "fp8";
}

double weight_width(const Variable& variable, const std::string& precision) {
  const auto own = static_cast<double>(size_of(variable.dtype));
  return has_half_weights(precision) ? std::min(own, kHalf) : own;
}

double gradient_width(const Variable& variable, const std::string& precision, bool fp32_gradients) {
  return fp32_gradients ? kFull : weight_width(variable, precision);
}

}  // namespace simsync
