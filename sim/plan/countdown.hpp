// What is left to wait for, the same in simulations and in real runs.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace simsync {

/// Counts, for every item (an instance, or a task of an agent) and iteration, the predecessors that are not complete.
class Countdown {
public:
  /// By lag (After::lag) and item: predecessors so many iterations before.
  using Waits = std::map<int, std::vector<std::int32_t>>;
  explicit Countdown(Waits waits) : waits_(std::move(waits)) {}

  /// Predecessors of an item in iteration `k` that are left. Those of iterations before the first are complete.
  [[nodiscard]] std::int32_t left(std::size_t item, int k) const {
    if (k < static_cast<int>(left_.size())) return left_[static_cast<std::size_t>(k)][item];
    std::int32_t sum = 0;
    for (const auto& [lag, waits] : waits_)
      if (lag <= k && item < waits.size()) sum += waits[item];
    return sum;
  }
  /// One predecessor less; true: it was the last.
  bool tell(std::size_t item, int k) { return --of(k)[item] == 0; }
  /// Nobody asks for an iteration again.
  void forget(int k) { of(k) = {}; }

private:
  std::vector<std::int32_t>& of(int k) {
    while (static_cast<int>(left_.size()) <= k) left_.push_back(waits_in(static_cast<int>(left_.size())));
    return left_[static_cast<std::size_t>(k)];
  }
  [[nodiscard]] std::vector<std::int32_t> waits_in(int k) const {
    std::vector<std::int32_t> out;
    for (const auto& [lag, waits] : waits_) {
      if (lag > k) break;
      out.resize(std::max(out.size(), waits.size()), 0);
      for (std::size_t item = 0; item < waits.size(); ++item) out[item] += waits[item];
    }
    return out;
  }

  Waits waits_;
  std::vector<std::vector<std::int32_t>> left_;  ///< by iteration and item
};

}  // namespace simsync
