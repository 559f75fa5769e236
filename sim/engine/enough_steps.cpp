#include "sim/engine/enough_steps.hpp"

#include <algorithm>

namespace simsync::detail {

namespace {

/// However the block lies in what counts.
int least_of(int block) {
  const int counted = 2 * block - 1;
  return std::clamp((5 * counted + 3) / 4, EnoughSteps::kLeast, EnoughSteps::kMost);
}

}  // namespace

EnoughSteps::EnoughSteps(int asked, int block, std::size_t ends_per_step)
    : least_(asked > 0 ? asked : least_of(block)),
      per_step_(ends_per_step),
      most_(ends_per_step * static_cast<std::size_t>(asked > 0 ? asked : kMost)),
      next_(ends_per_step * static_cast<std::size_t>(least_)) {}

bool EnoughSteps::reached(std::size_t ends, double error) {
  if (ends >= most_ || error <= kError) return ends >= next_;
  const std::size_t steps = ends / per_step_;
  next_ = std::min(per_step_ * (steps + steps / 4), most_);
  return false;
}

}  // namespace simsync::detail
