// Operand memory that kernels share in turns.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace simsync {

/// Hands out buffers until `capacity` bytes are allocated, then the ones again that were handed out longest ago. So the
/// operands of a large model fit into a small memory, and a kernel does not find them in a cache.
class BufferPool {
public:
  using Buffer = std::shared_ptr<void>;
  /// Allocates so many bytes and fills them.
  using Allocate = std::function<Buffer(std::size_t)>;

  BufferPool(std::size_t capacity, Allocate allocate) : capacity_(capacity), allocate_(std::move(allocate)) {}

  /// One buffer of at least that size for each of `sizes`, all different. They live as long as the pool.
  std::vector<void*> take(const std::vector<std::size_t>& sizes);
  [[nodiscard]] std::size_t allocated() const { return allocated_; }

private:
  struct Entry {
    Buffer buffer;
    std::size_t size = 0;
    std::uint64_t call = 0;  ///< the last call of `take` that handed it out
  };
  Entry& find(std::size_t size);

  std::size_t capacity_;
  Allocate allocate_;
  std::vector<Entry> entries_;
  std::size_t allocated_ = 0;
  std::uint64_t call_ = 0;
};

}  // namespace simsync
