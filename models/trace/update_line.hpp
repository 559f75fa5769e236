// What a server takes to apply a gradient, as a line through the update operations of a trace.
#pragma once
#include <optional>

#include "models/trace/trace.hpp"

namespace simsync {

/// time = per_tensor + bytes / rate, by least squares. A part that the operations do not tell from 0, because it is
/// less than twice its standard error, is missing.
struct UpdateLine {
  std::optional<Seconds> per_tensor;
  std::optional<BytesPerSecond> rate;
  Seconds residual;  ///< root of the mean square
  std::size_t operations = 0;
  std::size_t sizes = 0;
};

/// The line through the update operations of all steps; nullopt when fewer than three sizes occur.
std::optional<UpdateLine> fit_updates(const Trace& trace);

}  // namespace simsync
