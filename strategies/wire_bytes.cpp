#include "strategies/wire_bytes.hpp"

#include <algorithm>

namespace simsync {
namespace {

/// Share of a variable that a shard of so many elements is.
double share_of(const Variable& variable, std::int64_t elements) {
  return static_cast<double>(elements) / static_cast<double>(std::max<std::int64_t>(1, variable.elements()));
}

/// Rows of a shard that the batch touches, counted with repetition.
double rows_of(const Variable& variable, std::int64_t elements, std::int64_t batch) {
  return variable.lookups_per_sample * static_cast<double>(batch) * share_of(variable, elements);
}

}  // namespace

double index_bytes(const Variable& variable, const VariableStrategy& how, std::int64_t elements, std::int64_t batch) {
  constexpr double kIndexBytes = 8.0;  // 64-bit
  return travels_sparse(variable, how) ? kIndexBytes * rows_of(variable, elements, batch) : 0.0;
}

double wire_bytes(const Variable& variable, const VariableStrategy& how, std::int64_t elements, std::int64_t batch) {
  if (travels_sparse(variable, how)) {
    const double width = static_cast<double>(variable.elements()) /
                         static_cast<double>(std::max<std::int64_t>(1, variable.shape.front()));
    return rows_of(variable, elements, batch) * width * static_cast<double>(size_of(variable.dtype)) +
           index_bytes(variable, how, elements, batch);
  }
  const auto full = static_cast<double>(elements * size_of(variable.dtype));
  switch (how.compressor) {
    case Compressor::None:
    case Compressor::Cast32:
      return full;
    case Compressor::Fp16:
      return std::min(full, 2.0 * static_cast<double>(elements));
    case Compressor::PowerSgd: {
      if (variable.shape.size() < 2) return full;
      const auto rows = static_cast<double>(variable.shape.front());
      const double columns = static_cast<double>(variable.elements()) / rows;
      return std::min(full, (rows * share_of(variable, elements) + columns) * how.powersgd_rank *
                                static_cast<double>(size_of(variable.dtype)));
    }
  }
  return full;
}

}  // namespace simsync
