#include "sim/engine/enough_steps.hpp"

#include <algorithm>

namespace simsync::detail {

EnoughSteps::EnoughSteps(int asked, int block, std::size_t ends_per_step)
    : block_(block),
      least_(asked > 0 ? asked : whole(kLeast)),
      per_step_(ends_per_step),
      most_(ends_per_step * static_cast<std::size_t>(asked > 0 ? asked : whole(kMost))),
      next_(ends_per_step * static_cast<std::size_t>(least_)) {}

int EnoughSteps::whole(int steps) const {
  if (block_ == 0) return steps;
  // Between the first end that counts and the last.
  const auto counted = [](int n) { return n - n / 5 - 1; };
  const int wanted = std::max(1, (counted(steps) + block_ - 1) / block_) * block_;
  while (counted(steps) < wanted) ++steps;
  return steps;
}

bool EnoughSteps::reached(std::size_t ends, double error) {
  if (ends >= most_ || error <= kError) return ends >= next_;
  const auto steps = static_cast<int>(ends / per_step_);
  next_ = std::min(per_step_ * static_cast<std::size_t>(whole(steps + steps / 4)), most_);
  return false;
}

Seconds pace_of_ends(const std::vector<Seconds>& ends) {
  if (ends.size() == 1) return ends.front();
  const std::size_t first = ends.size() / 4;
  const auto count = static_cast<double>(ends.size() - first);
  const double middle = (count - 1.0) / 2.0;
  double covariance = 0.0;
  double variance = 0.0;
  for (std::size_t i = first; i < ends.size(); ++i) {
    const double at = static_cast<double>(i - first) - middle;
    covariance += at * ends[i].value();
    variance += at * at;
  }
  return Seconds{covariance / variance};
}

}  // namespace simsync::detail
