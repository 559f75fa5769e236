#include "base/progress_bar.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <iostream>

namespace simsync {

ProgressBar::ProgressBar(std::size_t total) : terminal_(isatty(STDERR_FILENO) == 1), total_(total) {}

ProgressBar::~ProgressBar() {
  clear();
}

void ProgressBar::advance(std::size_t steps) {
  set(done_ + steps, total_);
}

void ProgressBar::set(std::size_t done, std::size_t total, const std::string& detail) {
  done_ = done;
  total_ = total;
  detail_ = detail;
  constexpr auto kRedrawAfter = std::chrono::milliseconds(100);
  constexpr auto kFirstDrawnAfter = std::chrono::seconds(1);
  const auto now = std::chrono::steady_clock::now();
  if (now - begin_ < kFirstDrawnAfter) return;
  if (now - drawn_ < kRedrawAfter && done_ < total_) return;
  drawn_ = now;
  draw();
}

void ProgressBar::draw() {
  if (!terminal_ || total_ == 0) return;
  constexpr std::size_t kWidth = 30;
  const std::size_t filled = kWidth * done_ / total_;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin_;
  const double rate = static_cast<double>(done_) / elapsed.count();
  const std::string left =
      done_ > 0 ? fmt::format("{:.0f}", static_cast<double>(total_ - done_) / rate) : std::string{"?"};
  std::cerr << fmt::format("\r[{:#<{}}{: <{}}] {}/{}  {} s left  {}\x1b[K", "", filled, "", kWidth - filled, done_,
                           total_, left, detail_)
            << std::flush;
}

void ProgressBar::clear() {
  if (terminal_) std::cerr << "\r\x1b[K" << std::flush;
}

void ProgressBar::above(const std::function<void()>& print) {
  clear();
  print();
  draw();
}

void ProgressBar::message(const std::string& text) {
  above([&] { std::cerr << text << '\n'; });
}

}  // namespace simsync
