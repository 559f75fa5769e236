#include "hw/profile/buffer_pool.hpp"

#include <algorithm>

namespace simsync {

std::vector<void*> BufferPool::take(const std::vector<std::size_t>& sizes) {
  ++call_;
  std::vector<void*> out;
  for (const std::size_t size : sizes) {
    Entry& entry = find(std::max<std::size_t>(size, 1));
    entry.call = call_;
    out.push_back(entry.buffer.get());
  }
  return out;
}

/// A new buffer while there is room, else the one unused for longest that is large enough, else a new one after all.
BufferPool::Entry& BufferPool::find(std::size_t size) {
  Entry* oldest = nullptr;
  if (allocated_ + size > capacity_) {
    for (Entry& entry : entries_) {
      if (entry.size < size || entry.call == call_) continue;
      if (oldest == nullptr || entry.call < oldest->call) oldest = &entry;
    }
  }
  if (oldest != nullptr) return *oldest;
  entries_.push_back({allocate_(size), size, 0});
  allocated_ += size;
  return entries_.back();
}

}  // namespace simsync
