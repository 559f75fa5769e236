// Streams, events and buffers that free themselves. All belong to the device that was current when they were made.
#pragma once
#include <cuda_runtime_api.h>

#include <memory>
#include <type_traits>
#include <utility>

#include "base/units.hpp"

namespace simsync::cuda {

namespace detail {
struct FreeStream {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};
struct FreeEvent {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
struct FreeDevice {
  void operator()(void* data) const { cudaFree(data); }
};
struct FreePinned {
  void operator()(void* data) const { cudaFreeHost(data); }
};
}  // namespace detail

/// Work that runs in the order of its launch, independent of the default stream.
class Stream {
public:
  Stream();
  [[nodiscard]] cudaStream_t get() const { return handle_.get(); }
  /// Blocks the calling thread until everything launched so far has ended.
  void wait() const;

private:
  std::unique_ptr<std::remove_pointer_t<cudaStream_t>, detail::FreeStream> handle_;
};

/// Makes GPU `index` the one that the calling thread's new streams, events, buffers and launches belong to.
void use_device(int index);

/// A point in a stream, with the time at which the device reached it.
class Event {
public:
  Event();
  [[nodiscard]] cudaEvent_t get() const { return handle_.get(); }
  void record(const Stream& stream);
  /// Whether the device has passed it. @throws DeviceError when work before it failed.
  [[nodiscard]] bool done() const;
  void wait() const;
  /// Time on the device between `start` and this event; both must be done. Resolution about 0.5 us.
  [[nodiscard]] Seconds since(const Event& start) const;

private:
  std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, detail::FreeEvent> handle_;
};

/// Memory of the device, uninitialized.
class DeviceBuffer {
public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(Bytes size);
  [[nodiscard]] void* data() const { return data_.get(); }
  [[nodiscard]] float* floats() const { return static_cast<float*>(data_.get()); }
  [[nodiscard]] Bytes size() const { return size_; }

private:
  Bytes size_;
  std::unique_ptr<void, detail::FreeDevice> data_;
};

/// Page-locked memory of the host, which the copy engines reach without a detour.
class PinnedBuffer {
public:
  PinnedBuffer() = default;
  explicit PinnedBuffer(Bytes size);
  [[nodiscard]] void* data() const { return data_.get(); }
  [[nodiscard]] float* floats() const { return static_cast<float*>(data_.get()); }
  [[nodiscard]] Bytes size() const { return size_; }

private:
  Bytes size_;
  std::unique_ptr<void, detail::FreePinned> data_;
};

}  // namespace simsync::cuda
