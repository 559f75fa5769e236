// When steps that vary have been simulated for long enough. Private to sim/engine.
#pragma once
#include <cstddef>

namespace simsync::detail {

/// Such steps never repeat, and neighboring ones depend on each other: how many of them tell their mean shows
/// only as they end.
class EnoughSteps {
public:
  /// `asked` steps of each rank, or common to all. 0: from kLeast to kMost, until the standard error of their mean is
  /// at most kError of it.
  EnoughSteps(int asked, std::size_t ends_per_step);

  static constexpr int kLeast = 60;
  static constexpr int kMost = 300;
  static constexpr double kError = 0.01;

  /// Of each rank, as far as it is known before.
  [[nodiscard]] int least() const { return asked_ > 0 ? asked_ : kLeast; }
  /// Whether it is time to look, after so many ends of steps.
  [[nodiscard]] bool due(std::size_t ends) const { return ends >= next_; }
  /// After so many ends, `error` being the relative standard error of their mean.
  bool reached(std::size_t ends, double error);

private:
  int asked_;
  std::size_t most_;  ///< ends
  std::size_t next_;
};

}  // namespace simsync::detail
