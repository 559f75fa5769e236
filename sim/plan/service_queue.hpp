// What waits for a resource and what it serves, the same in simulations and in real runs.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/plan/plan.hpp"

namespace simsync {

/// One group's share of a Queue, which must outlive it. `Item` is what the caller calls an instance.
template <typename Item>
class ServiceQueue {
public:
  explicit ServiceQueue(const Queue& queue) : queue_(&queue) {}

  /// How much of the resource an op takes.
  struct Load {
    double threads = 1.0;
    double bytes = 0.0;
  };
  static Load load_of(const Op& op) { return {op.threads(), op.bytes()}; }

  /// Smaller `order` first, and what came first among equals.
  void wait(int order, std::int64_t sequence, Item item, const Load& load) {
    push({order, sequence, std::move(item), load});
  }
  /// The first that fits, served from now on; nothing when it does not fit. A strict queue looks behind it.
  std::optional<Item> next() {
    std::optional<Item> out;
    while (!waiting_.empty()) {
      if (admits(waiting_.front().load)) {
        Waiting first = pop();
        ++in_service_;
        in_use_ += first.load.threads;
        in_flight_ += first.load.bytes;
        out = std::move(first.item);
        break;
      }
      if (!queue_->strict || (queue_->slots > 0 && in_use_ >= queue_->slots)) break;
      passed_.push_back(pop());
    }
    for (Waiting& back : passed_) push(std::move(back));
    passed_.clear();
    return out;
  }
  /// What was served has ended, or makes way.
  void leave(const Load& load) {
    --in_service_;
    in_use_ = in_service_ == 0 ? 0.0 : in_use_ - load.threads;
    in_flight_ -= load.bytes;
  }
  /// That has to be served first; nothing: nobody waits.
  [[nodiscard]] const Item* first() const { return waiting_.empty() ? nullptr : &waiting_.front().item; }

private:
  struct Waiting {
    int order;
    std::int64_t sequence;
    Item item;
    Load load;
    friend bool operator>(const Waiting& a, const Waiting& b) {
      return std::tie(a.order, a.sequence) > std::tie(b.order, b.sequence);
    }
  };

  void push(Waiting last) {
    waiting_.push_back(std::move(last));
    std::push_heap(waiting_.begin(), waiting_.end(), std::greater<>());
  }
  Waiting pop() {
    std::pop_heap(waiting_.begin(), waiting_.end(), std::greater<>());
    Waiting first = std::move(waiting_.back());
    waiting_.pop_back();
    return first;
  }

  [[nodiscard]] bool admits(const Load& load) const {
    if (in_service_ == 0) return true;
    constexpr double kRounding = 1e-9;
    if (queue_->slots > 0 && in_use_ + load.threads > queue_->slots + kRounding) return false;
    if (queue_->credit <= 0.0) return true;
    return queue_->strict ? in_flight_ + load.bytes <= queue_->credit : in_flight_ < queue_->credit;
  }

  const Queue* queue_;
  int in_service_ = 0;
  double in_use_ = 0.0;           ///< slots
  double in_flight_ = 0.0;        ///< bytes
  std::vector<Waiting> waiting_;  ///< a heap: who has to be served first is in front
  std::vector<Waiting> passed_;   ///< that a strict queue looked behind; empty but in next()
};

}  // namespace simsync
