#include "hw/cuda/device_runtime.hpp"

#include <chrono>
#include <thread>

#include "base/error.hpp"
#include "hw/cuda/check.hpp"

namespace simsync::cuda {
namespace {

/// Makes the GPU the current one of the calling thread, before any member makes a stream on it.
DeviceInfo take_device(int index) {
  DeviceInfo device = describe_device(index);
  SIMSYNC_CUDA(cudaSetDevice(index));
  return device;
}

void expect_room(Bytes size, Bytes from, Bytes to) {
  if (size.count < 0 || size > from || size > to) throw PlanError("a copy is larger than its buffers");
}

void expect_floats(std::size_t floats, const DeviceBuffer& buffer) {
  if (floats * sizeof(float) > static_cast<std::size_t>(buffer.size().count))
    throw PlanError("a collective is larger than its buffers");
}

void copy(const void* from, void* to, Bytes size, cudaMemcpyKind kind, const Stream& stream) {
  SIMSYNC_CUDA(cudaMemcpyAsync(to, from, static_cast<std::size_t>(size.count), kind, stream.get()));
}

}  // namespace

bool Completion::wait_for(Seconds timeout) const {
  constexpr std::chrono::microseconds kPause{20};
  const auto start = std::chrono::steady_clock::now();
  const std::chrono::duration<double> longest(timeout.value());
  while (!done()) {
    if (std::chrono::steady_clock::now() - start > longest) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

DeviceRuntime::DeviceRuntime(int index) : device_(take_device(index)), calibration_(calibrate_spin(compute_)) {}

void DeviceRuntime::join(const NcclId& id, int rank, int size) {
  SIMSYNC_CUDA(cudaSetDevice(device_.index));
  group_.emplace(id, rank, size);
}

NcclCommunicator& DeviceRuntime::group() {
  if (!group_) throw PlanError("this rank has not joined a group");
  return *group_;
}

template <class Work>
Completion DeviceRuntime::timed(const Stream& stream, const Work& work) {
  Completion completion;
  completion.span_->start.record(stream);
  work();
  completion.span_->end.record(stream);
  return completion;
}

Completion DeviceRuntime::run_compute(Seconds length) {
  return timed(compute_, [&] { spin(length, calibration_, compute_); });
}

void DeviceRuntime::compute_after(const Completion& work) {
  SIMSYNC_CUDA(cudaStreamWaitEvent(compute_.get(), work.span_->end.get(), 0));
}

void DeviceRuntime::communicate_after(const Completion& work) {
  SIMSYNC_CUDA(cudaStreamWaitEvent(communication_.get(), work.span_->end.get(), 0));
}

Completion DeviceRuntime::all_reduce(const DeviceBuffer& in, DeviceBuffer& out, std::size_t floats) {
  expect_floats(floats, in);
  expect_floats(floats, out);
  return timed(communication_, [&] { group().all_reduce(in.floats(), out.floats(), floats, communication_); });
}

Completion DeviceRuntime::reduce_scatter(const DeviceBuffer& in, DeviceBuffer& out, std::size_t floats) {
  expect_floats(floats * static_cast<std::size_t>(group().size()), in);
  expect_floats(floats, out);
  return timed(communication_, [&] { group().reduce_scatter(in.floats(), out.floats(), floats, communication_); });
}

Completion DeviceRuntime::all_gather(const DeviceBuffer& in, DeviceBuffer& out, std::size_t floats) {
  expect_floats(floats, in);
  expect_floats(floats * static_cast<std::size_t>(group().size()), out);
  return timed(communication_, [&] { group().all_gather(in.floats(), out.floats(), floats, communication_); });
}

Completion DeviceRuntime::send(const DeviceBuffer& in, std::size_t floats, int peer) {
  expect_floats(floats, in);
  return timed(communication_, [&] { group().send(in.floats(), floats, peer, communication_); });
}

Completion DeviceRuntime::receive(DeviceBuffer& out, std::size_t floats, int peer) {
  expect_floats(floats, out);
  return timed(communication_, [&] { group().receive(out.floats(), floats, peer, communication_); });
}

Completion DeviceRuntime::copy_to_host(const DeviceBuffer& from, PinnedBuffer& to, Bytes size) {
  expect_room(size, from.size(), to.size());
  return timed(communication_, [&] { copy(from.data(), to.data(), size, cudaMemcpyDeviceToHost, communication_); });
}

Completion DeviceRuntime::copy_to_device(const PinnedBuffer& from, DeviceBuffer& to, Bytes size) {
  expect_room(size, from.size(), to.size());
  return timed(communication_, [&] { copy(from.data(), to.data(), size, cudaMemcpyHostToDevice, communication_); });
}

void DeviceRuntime::wait() const {
  compute_.wait();
  communication_.wait();
}

}  // namespace simsync::cuda
