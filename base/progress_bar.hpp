// A progress line for long work: on a terminal only, on standard error.
#pragma once
#include <chrono>
#include <cstddef>
#include <functional>
#include <iosfwd>
#include <string>

namespace simsync {

/// Appears after a second, so that short work shows none. Its total stays what it was at first.
class ProgressBar {
public:
  using Clock = std::function<std::chrono::steady_clock::time_point()>;

  /// Draws nothing unless standard error is a terminal.
  explicit ProgressBar(std::size_t total);
  /// Draws on `out`, at the times that `clock` tells.
  ProgressBar(std::size_t total, std::ostream& out, Clock clock);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void advance(std::size_t steps = 1);
  /// So much of the total is done. `detail` stands behind the bar from now on.
  void set(std::size_t done, const std::string& detail = {});
  /// Work whose end is not known: so much of one of its rounds is done, `detail` says of which.
  void set_round(double share, const std::string& detail);
  /// Calls `print`, whose lines appear above the bar.
  void above(const std::function<void()>& print);
  /// A line of its own on standard error, above the bar.
  void message(const std::string& text);

  /// Removes the bar until the next step.
  void clear();

private:
  void draw_now_and_then();
  void draw();
  [[nodiscard]] std::string count_text() const;

  std::ostream* out_;  ///< null: draws nothing
  Clock clock_;
  std::size_t total_;
  std::size_t done_ = 0;
  double share_ = 0.0;
  bool rounds_ = false;  ///< set_round
  std::string detail_;
  bool visible_ = false;
  std::chrono::steady_clock::time_point begin_;
  std::chrono::steady_clock::time_point drawn_;
};

}  // namespace simsync
