// When steps that vary have been simulated for long enough, and what a step takes. Private to sim/engine.
#pragma once
#include <cstddef>
#include <vector>

#include "base/units.hpp"

namespace simsync::detail {

/// Such steps never repeat, and neighboring ones depend on each other: how many of them tell their mean shows
/// only as they end.
class EnoughSteps {
public:
  /// `asked` steps of each rank, or common to all. 0: from kLeast to kMost, until the standard error of their mean is
  /// at most kError of it; a few more, so that without the first fifth they are whole blocks in which ranks draw all
  /// profiled steps (see longest_block).
  EnoughSteps(int asked, int block, std::size_t ends_per_step);

  static constexpr int kLeast = 60;
  static constexpr int kMost = 300;
  static constexpr double kError = 0.01;

  /// Of each rank, as far as it is known before.
  [[nodiscard]] int least() const { return least_; }
  /// Whether it is time to look, after so many ends of steps.
  [[nodiscard]] bool due(std::size_t ends) const { return ends >= next_; }
  /// After how many steps it is time to look: once they were enough, those.
  [[nodiscard]] int steps() const { return static_cast<int>(next_ / per_step_); }
  /// After so many ends, `error` being the relative standard error of their mean.
  bool reached(std::size_t ends, double error);

private:
  /// So many steps, or the next number of which whole blocks count.
  [[nodiscard]] int whole(int steps) const;

  int block_;  ///< 0: any number
  int least_;
  std::size_t per_step_;  ///< ends
  std::size_t most_;      ///< ends
  std::size_t next_;
};

/// Seconds a step, of steps that end at these times and keep changing though nothing is drawn: the slope of the line
/// through all ends but the first quarter (least squares). What ends late in one step makes the next one short, so that
/// the mean of the same steps rests on the chance of two ends.
Seconds pace_of_ends(const std::vector<Seconds>& ends);

}  // namespace simsync::detail
