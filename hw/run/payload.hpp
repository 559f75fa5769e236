// Gradients whose sums are known: every run is checked while it is timed.
//
// A gradient of rank r is r + 1 everywhere but at a few sample positions, where it also depends on the position and
// on the iteration. All are small whole numbers, so sums are exact in any order.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "models/optimizer.hpp"

namespace simsync {

/// Floats that stand for `bytes`, at least one.
std::size_t floats_of(double bytes);

/// Positions that are checked in a buffer of `floats`: ascending, the first and the last among them.
std::vector<std::size_t> sample_positions(std::size_t floats);

float gradient_at(int rank, std::size_t position, int iteration);
float gradient_sum_at(int ranks, std::size_t position, int iteration);

/// What a tensor holds that no worker pushes to.
float kept_at(std::size_t position);

/// One rank's gradient of one message.
class GradientValues {
public:
  GradientValues(int rank, std::size_t floats);
  /// Puts the values of an iteration into the sample positions. Cost: O(samples).
  void set(int iteration);
  [[nodiscard]] std::span<float> values() { return values_; }
  [[nodiscard]] const std::vector<std::size_t>& samples() const { return samples_; }

private:
  int rank_;
  std::vector<float> values_;
  std::vector<std::size_t> samples_;
};

/// Variables with the state of their optimizer. Adding a gradient twice in the same way gives the same bits, so what
/// a server should hold can be computed beside it for a few positions.
class Parameters {
public:
  Parameters(Optimizer optimizer, std::size_t floats);
  void apply(std::span<const float> gradient);
  [[nodiscard]] std::span<const float> values() const { return values_; }

private:
  Optimizer optimizer_;
  int steps_ = 0;
  std::vector<float> values_;
  std::vector<float> first_;   ///< momentum; first moment
  std::vector<float> second_;  ///< second moment
};

}  // namespace simsync
