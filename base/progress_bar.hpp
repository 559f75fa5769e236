// A progress line for long work: on a terminal only, on standard error.
#pragma once
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

namespace simsync {

class ProgressBar {
public:
  /// Draws nothing unless standard error is a terminal, and nothing in its first second.
  explicit ProgressBar(std::size_t total);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void advance(std::size_t steps = 1);
  /// `detail` stands behind the bar from now on.
  void set(std::size_t done, std::size_t total, const std::string& detail = {});
  /// Calls `print`, whose lines appear above the bar.
  void above(const std::function<void()>& print);
  /// A line of its own on standard error, above the bar.
  void message(const std::string& text);

  /// Removes the bar until the next step.
  void clear();

private:
  void draw();
  bool terminal_;
  std::size_t done_ = 0;
  std::size_t total_;
  std::string detail_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point drawn_;
};

}  // namespace simsync
