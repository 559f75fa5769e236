#include "base/progress_bar.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <utility>

namespace simsync {

ProgressBar::ProgressBar(std::size_t total) : ProgressBar(total, std::cerr, std::chrono::steady_clock::now) {
  if (isatty(STDERR_FILENO) != 1) out_ = nullptr;
}

ProgressBar::ProgressBar(std::size_t total, std::ostream& out, Clock clock)
    : out_(&out), clock_(std::move(clock)), total_(total), begin_(clock_()) {}

ProgressBar::~ProgressBar() {
  clear();
}

void ProgressBar::advance(std::size_t steps) {
  set(done_ + steps, detail_);
}

void ProgressBar::set(std::size_t done, const std::string& detail) {
  done_ = std::min(done, total_);
  share_ = total_ > 0 ? static_cast<double>(done_) / static_cast<double>(total_) : 1.0;
  detail_ = detail;
  draw_now_and_then();
}

void ProgressBar::set_round(double share, const std::string& detail) {
  rounds_ = true;
  share_ = std::clamp(share, 0.0, 1.0);
  detail_ = detail;
  draw_now_and_then();
}

void ProgressBar::draw_now_and_then() {
  constexpr auto kRedrawAfter = std::chrono::milliseconds(100);
  const auto now = clock_();
  if (now - drawn_ < kRedrawAfter) return;
  drawn_ = now;
  draw();
}

/// `3/8  12 s left`.
std::string ProgressBar::count_text() const {
  if (rounds_) return {};
  std::string out = fmt::format("{}/{}", done_, total_);
  if (done_ == 0 || done_ >= total_) return out;
  const std::chrono::duration<double> elapsed = clock_() - begin_;
  return out + fmt::format("  {:.0f} s left", elapsed.count() * (1.0 / share_ - 1.0));
}

void ProgressBar::draw() {
  constexpr auto kShort = std::chrono::seconds(1);
  if (out_ == nullptr || clock_() - begin_ < kShort) return;
  constexpr std::size_t kWidth = 30;
  const auto filled = static_cast<std::size_t>(share_ * kWidth);
  const std::string count = count_text();
  *out_ << fmt::format("\r[{:#<{}}{: <{}}] {}{}{}\x1b[K", "", filled, "", kWidth - filled, count,
                       count.empty() || detail_.empty() ? "" : "  ", detail_)
        << std::flush;
  visible_ = true;
}

void ProgressBar::clear() {
  if (visible_) *out_ << "\r\x1b[K" << std::flush;
  visible_ = false;
}

void ProgressBar::above(const std::function<void()>& print) {
  const bool drawn = visible_;
  clear();
  print();
  if (drawn) draw();
}

void ProgressBar::message(const std::string& text) {
  above([&] { (out_ == nullptr ? std::cerr : *out_) << text << '\n'; });
}

}  // namespace simsync
