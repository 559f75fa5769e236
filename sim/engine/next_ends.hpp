// Which of many things ends first, where dates move often. Private to sim/engine.
#pragma once
#include <cstddef>
#include <utility>
#include <vector>

namespace simsync::detail {

/// A heap of dates by number: every change costs O(log n).
class NextEnds {
public:
  void clear() {
    heap_.clear();
    place_.clear();
  }
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] double date() const { return heap_.front().date; }  ///< of the first
  [[nodiscard]] int first() const { return heap_.front().number; }  ///< the least number among equals

  /// Adds `number` or moves it.
  void set(int number, double date) {
    const auto i = static_cast<std::size_t>(number);
    if (i >= place_.size()) place_.resize(i + 1, kAbsent);
    if (place_[i] == kAbsent) {
      place_[i] = heap_.size();
      heap_.push_back({});
    }
    move(place_[i], {date, number});
  }
  void remove(int number) {
    const std::size_t hole = place_[static_cast<std::size_t>(number)];
    place_[static_cast<std::size_t>(number)] = kAbsent;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (hole < heap_.size()) move(hole, last);
  }

private:
  struct Entry {
    double date = 0.0;
    int number = 0;
    friend bool operator<(const Entry& a, const Entry& b) {
      return a.date != b.date ? a.date < b.date : a.number < b.number;
    }
  };
  static constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);

  void put(std::size_t at, const Entry& entry) {
    heap_[at] = entry;
    place_[static_cast<std::size_t>(entry.number)] = at;
  }
  /// Puts an entry where it belongs, beginning from a hole.
  void move(std::size_t hole, const Entry& entry) {
    while (hole > 0 && entry < heap_[(hole - 1) / 2]) {
      put(hole, heap_[(hole - 1) / 2]);
      hole = (hole - 1) / 2;
    }
    for (std::size_t child = 2 * hole + 1; child < heap_.size(); child = 2 * hole + 1) {
      if (child + 1 < heap_.size() && heap_[child + 1] < heap_[child]) ++child;
      if (!(heap_[child] < entry)) break;
      put(hole, heap_[child]);
      hole = child;
    }
    put(hole, entry);
  }

  std::vector<Entry> heap_;
  std::vector<std::size_t> place_;  ///< by number
};

}  // namespace simsync::detail
