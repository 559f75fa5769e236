// How many bytes gradients, and sharded parameters, take on the wire.
#pragma once
#include <cstdint>

#include "models/profile.hpp"
#include "strategies/strategy.hpp"

namespace simsync {

/// What the gradients of all variables have in common.
struct StepGradients {
  std::int64_t samples = 1;  ///< of a worker in a step
  bool half = false;         ///< two bytes an element, as in half precision without `amp` and without fp32_gradients
};
StepGradients gradients_of(const Profile& profile);

/// Bytes of a shard's gradient on the wire under the variable's compressor.
double wire_bytes(const Variable& variable, const VariableStrategy& how, std::int64_t elements,
                  const StepGradients& step);
/// The part of wire_bytes that is indices of rows: 0 unless the gradient travels sparse.
double index_bytes(const Variable& variable, const VariableStrategy& how, std::int64_t elements, std::int64_t samples);

/// Bytes of an element of a sharded parameter that is gathered, under this precision of the profile.
double gathered_width(const Variable& variable, const Sharding& sharding, const std::string& precision);
/// Of a gradient that is reduced. `fp32_gradients`: Profile's.
double reduced_width(const Variable& variable, const Sharding& sharding, const std::string& precision,
                     bool fp32_gradients);

}  // namespace simsync
