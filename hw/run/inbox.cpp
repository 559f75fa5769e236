#include "hw/run/inbox.hpp"

#include <chrono>

namespace simsync {
namespace {

using Clock = std::chrono::steady_clock;

Clock::time_point point_of(double seconds) {
  return Clock::time_point(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)));
}

}  // namespace

double now_s() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

void Inbox::push(Event event) {
  {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }
  changed_.notify_one();
}

std::optional<Event> Inbox::pop_until(double deadline) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_until(lock, point_of(deadline), [this] { return !events_.empty(); })) return std::nullopt;
  Event next = std::move(events_.front());
  events_.pop_front();
  return next;
}

}  // namespace simsync
