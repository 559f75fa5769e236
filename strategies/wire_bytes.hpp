// How many bytes a gradient takes on the wire.
#pragma once
#include <cstdint>

#include "strategies/strategy.hpp"

namespace simsync {

/// Bytes of a shard's gradient on the wire under the variable's compressor. `batch`: samples of a worker in a step.
double wire_bytes(const Variable& variable, const VariableStrategy& how, std::int64_t elements, std::int64_t batch);
/// The part of wire_bytes that is indices of rows: 0 unless the gradient travels sparse.
double index_bytes(const Variable& variable, const VariableStrategy& how, std::int64_t elements, std::int64_t batch);

}  // namespace simsync
