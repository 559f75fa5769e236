#include "strategies/wire_bytes.hpp"

#include <algorithm>

#include "models/precision.hpp"

namespace simsync {
namespace {

/// Share of a variable that a shard of so many elements is.
double share_of(const Variable& variable, std::int64_t elements) {
  return static_cast<double>(elements) / static_cast<double>(std::max<std::int64_t>(1, variable.elements()));
}

/// Rows of a shard that so many samples touch, counted with repetition.
double rows_of(const Variable& variable, std::int64_t elements, std::int64_t samples) {
  return variable.lookups_per_sample * static_cast<double>(samples) * share_of(variable, elements);
}

/// Half precision computes with two bytes, and so it gathers and reduces unless the strategy says otherwise.
double sent_width(const Variable& variable, const std::optional<DType>& chosen, const std::string& precision) {
  if (chosen) return static_cast<double>(size_of(*chosen));
  return width_of(variable, has_half_activations(precision));
}

}  // namespace

StepGradients gradients_of(const Profile& profile) {
  return {.samples = profile.micro_steps * profile.batch,
          .half = has_half_weights(profile.precision) && !profile.fp32_gradients};
}

double index_bytes(const Variable& variable, const VariableStrategy& how, std::int64_t elements, std::int64_t samples) {
  constexpr double kIndexBytes = 8.0;  // 64-bit
  return travels_sparse(variable, how) ? kIndexBytes * rows_of(variable, elements, samples) : 0.0;
}

double wire_bytes(const Variable& variable, const VariableStrategy& how, std::int64_t elements,
                  const StepGradients& step) {
  const double width = width_of(variable, step.half);
  if (travels_sparse(variable, how)) {
    const double columns = static_cast<double>(variable.elements()) /
                           static_cast<double>(std::max<std::int64_t>(1, variable.shape.front()));
    return rows_of(variable, elements, step.samples) * columns * width +
           index_bytes(variable, how, elements, step.samples);
  }
  const double full = static_cast<double>(elements) * width;
  switch (how.compressor) {
    case Compressor::None:
    case Compressor::Cast32:
      return full;
    case Compressor::Fp16:
      return static_cast<double>(elements) * std::min(width, 2.0);
    case Compressor::PowerSgd: {
      if (variable.shape.size() < 2) return full;
      const auto rows = static_cast<double>(variable.shape.front());
      const double columns = static_cast<double>(variable.elements()) / rows;
      return std::min(full, (rows * share_of(variable, elements) + columns) * how.powersgd_rank * width);
    }
  }
  return full;
}

double gathered_width(const Variable& variable, const Sharding& sharding, const std::string& precision) {
  return sent_width(variable, sharding.param_dtype, precision);
}

double reduced_width(const Variable& variable, const Sharding& sharding, const std::string& precision,
                     bool fp32_gradients) {
  if (!sharding.reduce_dtype && has_half_weights(precision)) return gradient_width(variable, precision, fp32_gradients);
  return sent_width(variable, sharding.reduce_dtype, precision);
}

}  // namespace simsync
