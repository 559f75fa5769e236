// What the names of precisions mean: fp32, tf32, amp, fp16, bf16, fp8.
#pragma once
#include <string>

#include "models/model.hpp"

namespace simsync {

/// Whether activations have two bytes. In fp8 products alone are computed in it (Transformer Engine).
bool has_half_activations(const std::string& precision);
/// Whether weights and gradients have two bytes. `amp` keeps them in fp32.
bool has_half_weights(const std::string& precision);

/// Bytes of an element of a variable, at most two if `half`.
double width_of(const Variable& variable, bool half);
/// Of its weights while it trains: two in half precision, else the variable's own.
double weight_width(const Variable& variable, const std::string& precision);
/// Of its gradient as it adds up on a rank and, uncompressed, travels: the same, but four with `fp32_gradients`
/// (OptimizerState).
double gradient_width(const Variable& variable, const std::string& precision, bool fp32_gradients);

}  // namespace simsync
