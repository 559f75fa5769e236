#include "sim/engine/network_events.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"

namespace simsync::detail {

void NetworkEvents::clear_events() {
  numbers_ = started_ = in_flight_ = work_ = 0;
  happening_ = false;
  delays_ = {};
  at_once_.clear();
  due_.clear();
  starting_.clear();
  ended_.clear();
  told_.clear();
}

void NetworkEvents::push(const Delay& delay) {
  if (happening_ && delay.date <= clock() + kSameInstant) {
    at_once_.push_back(delay);
    return;
  }
  delays_.push(delay);
  wake_at(delay.date);
}

void NetworkEvents::after(Seconds delay, Token token) {
  push({.date = clock() + std::max(0.0, delay.value()), .number = numbers_++, .token = token});
}

void NetworkEvents::start_flow(int path, double bytes, Token token) {
  constexpr double kHalfByte = 0.5;
  constexpr int kStartAndEnd = 256;
  ++started_;
  work_ += kStartAndEnd;
  if (bytes < kHalfByte) return after(Seconds{0.0}, token);
  work_ += ++in_flight_;
  starting_.push_back({.path = path, .bytes = std::round(bytes), .token = token});
  if (starting_.size() == 1) push({.date = clock(), .number = numbers_++, .starts_flows = true});
}

double NetworkEvents::starting_bytes(int path) const {
  double bytes = 0.0;
  for (const Start& flow : starting_)
    if (flow.path == path) bytes += flow.bytes;
  return bytes;
}

double NetworkEvents::next_delay() const {
  return delays_.empty() ? std::numeric_limits<double>::infinity() : delays_.top().date;
}

void NetworkEvents::begin_events(Handler handler, std::function<void()> instant_over) {
  handler_ = std::move(handler);
  instant_over_ = std::move(instant_over);
}

void NetworkEvents::end_events() {
  SIMSYNC_ASSERT(delays_.empty() && starting_.empty() && ended_.empty());
  handler_ = nullptr;
  instant_over_ = nullptr;
}

void NetworkEvents::happen() {
  try {
    tell_all();
  } catch (...) {
    clear_events();
    end_events();
    throw;
  }
}

void NetworkEvents::tell_all() {
  happening_ = true;
  while (end_delays() || tell_ends()) {
    while (end_delays()) {
    }
    instant_over_();
  }
  happening_ = false;
}

bool NetworkEvents::end_delays() {
  due_.clear();
  due_.swap(at_once_);
  if (next_delay() <= clock() + kSameInstant) {
    for (; next_delay() <= clock() + kSameInstant; delays_.pop()) due_.push_back(delays_.top());
    std::sort(due_.begin(), due_.end(), [](const Delay& a, const Delay& b) { return a.number < b.number; });
  }
  for (const Delay& delay : due_) {
    if (!delay.starts_flows) {
      handler_(delay.token);
      continue;
    }
    for (Start& flow : starting_) {
      flow.number = numbers_++;
      launch(flow);
    }
    starting_.clear();
  }
  return !due_.empty();
}

bool NetworkEvents::tell_ends() {
  if (ended_.empty()) return false;
  told_.swap(ended_);
  std::sort(told_.begin(), told_.end(), [](const End& a, const End& b) { return a.number < b.number; });
  for (const End& end : told_) {
    --in_flight_;
    forget(end);
    handler_(end.token);
  }
  told_.clear();
  return true;
}

}  // namespace simsync::detail
