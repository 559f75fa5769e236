#include "sim/engine/enough_steps.hpp"

#include <algorithm>

namespace simsync::detail {

EnoughSteps::EnoughSteps(int asked, std::size_t ends_per_step)
    : asked_(asked),
      most_(ends_per_step * static_cast<std::size_t>(asked > 0 ? asked : kMost)),
      next_(ends_per_step * static_cast<std::size_t>(least())) {}

bool EnoughSteps::reached(std::size_t ends, double error) {
  if (ends >= most_ || error <= kError) return ends >= next_;
  next_ = std::min(ends + ends / 4, most_);
  return false;
}

}  // namespace simsync::detail
