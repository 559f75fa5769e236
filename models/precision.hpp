// What the names of precisions mean: fp32, tf32, amp, fp16, bf16, fp8.
#pragma once
#include <string>

namespace simsync {

/// Whether activations have two bytes. In fp8 products alone are computed in it (Transformer Engine).
bool has_half_activations(const std::string& precision);
/// Whether weights and gradients have two bytes. `amp` keeps them in fp32.
bool has_half_weights(const std::string& precision);

}  // namespace simsync
