#include "models/trace/range_index.hpp"

#include <algorithm>

namespace simsync::detail {

RangeIndex::RangeIndex(const std::vector<KinetoRange>& ranges) {
  for (const KinetoRange& range : ranges) by_thread_[range.thread].push_back({&range});
  for (auto& [thread, own] : by_thread_) {
    std::stable_sort(own.begin(), own.end(),
                     [](const Entry& a, const Entry& b) { return a.range->begin < b.range->begin; });
    const Entry* open = nullptr;
    for (Entry& entry : own) {
      while (open != nullptr && open->range->end <= entry.range->begin) open = open->outer;
      entry.outer = open;
      open = &entry;
    }
  }
}

const KinetoRange* RangeIndex::around(int thread, double time) const {
  const auto found = by_thread_.find(thread);
  if (found == by_thread_.end()) return nullptr;
  const auto next = std::upper_bound(found->second.begin(), found->second.end(), time,
                                     [](double value, const Entry& entry) { return value < entry.range->begin; });
  const Entry* entry = next == found->second.begin() ? nullptr : &*(next - 1);
  while (entry != nullptr && entry->range->end <= time) entry = entry->outer;
  return entry == nullptr ? nullptr : entry->range;
}

}  // namespace simsync::detail
