#include "hw/cuda/handles.hpp"

#include "hw/cuda/check.hpp"

namespace simsync::cuda {
namespace {

std::size_t size_of(Bytes bytes) {
  return static_cast<std::size_t>(bytes.count);
}

}  // namespace

Stream::Stream() {
  cudaStream_t stream = nullptr;
  SIMSYNC_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  handle_.reset(stream);
}

void Stream::wait() const {
  SIMSYNC_CUDA(cudaStreamSynchronize(handle_.get()));
}

void use_device(int index) {
  SIMSYNC_CUDA(cudaSetDevice(index));
}

Event::Event() {
  cudaEvent_t event = nullptr;
  SIMSYNC_CUDA(cudaEventCreate(&event));
  handle_.reset(event);
}

void Event::record(const Stream& stream) {
  SIMSYNC_CUDA(cudaEventRecord(handle_.get(), stream.get()));
}

bool Event::done() const {
  const cudaError_t status = cudaEventQuery(handle_.get());
  if (status == cudaErrorNotReady) return false;
  check(status, "cudaEventQuery");
  return true;
}

void Event::wait() const {
  SIMSYNC_CUDA(cudaEventSynchronize(handle_.get()));
}

Seconds Event::since(const Event& start) const {
  float milliseconds = 0.0F;
  SIMSYNC_CUDA(cudaEventElapsedTime(&milliseconds, start.get(), get()));
  return Seconds{1e-3 * static_cast<double>(milliseconds)};
}

DeviceBuffer::DeviceBuffer(Bytes size) : size_(size) {
  void* data = nullptr;
  SIMSYNC_CUDA(cudaMalloc(&data, size_of(size)));
  data_.reset(data);
}

PinnedBuffer::PinnedBuffer(Bytes size) : size_(size) {
  void* data = nullptr;
  SIMSYNC_CUDA(cudaMallocHost(&data, size_of(size)));
  data_.reset(data);
}

}  // namespace simsync::cuda
