// The GPU backend. It is a module of its own, loaded when a GPU is profiled: cuBLASLt alone takes 0.1 s and 200 MB to
// load, which every command of the program would pay.
#include <fmt/format.h>

#include <algorithm>

#include "hw/cuda/check.hpp"
#include "hw/cuda/device.hpp"
#include "hw/cuda/kernels.hpp"
#include "hw/profile/cuda/kernels.hpp"
#include "hw/profile/cuda/module.hpp"

namespace simsync::cuda {
namespace {

constexpr std::size_t kPoolBytes = std::size_t{2} << 30;  ///< many times the second-level cache of any GPU
constexpr Bytes kCopyBytes{std::int64_t{256} << 20};
constexpr int kCopies = 9;

/// 0x3c3c is a small number in every precision.
BufferPool::Buffer allocate(std::size_t size) {
  constexpr int kFill = 0x3c;
  auto buffer = std::make_shared<DeviceBuffer>(Bytes{static_cast<std::int64_t>(size)});
  SIMSYNC_CUDA(cudaMemset(buffer->data(), kFill, size));
  return {buffer, buffer->data()};
}

class StreamKernel final : public Kernel {
public:
  StreamKernel(Bytes size, const Context& context, BufferPool& pool)
      : words_(std::max<std::int64_t>(size.count / (2 * kWordBytes), 1)), context_(context) {
    const auto half = static_cast<std::size_t>(words_ * kWordBytes);
    const auto buffers = pool.take({half, half});
    from_ = buffers[0];
    to_ = buffers[1];
  }
  void launch() override { launch_stream(from_, to_, words_, context_.stream.get()); }

private:
  static constexpr std::int64_t kWordBytes = 16;
  std::int64_t words_;
  const Context& context_;
  const void* from_ = nullptr;
  void* to_ = nullptr;
};

DeviceInfo take_device(int index) {
  DeviceInfo info = describe_device(index);
  SIMSYNC_CUDA(cudaSetDevice(index));
  return info;
}

CudnnHandle make_cudnn(const Stream& stream) {
  cudnnHandle_t handle = nullptr;
  SIMSYNC_CUDA(cudnnCreate(&handle));
  CudnnHandle owned(handle);
  SIMSYNC_CUDA(cudnnSetStream(handle, stream.get()));
  return owned;
}

LtHandle make_lt() {
  cublasLtHandle_t handle = nullptr;
  SIMSYNC_CUDA(cublasLtCreate(&handle));
  return LtHandle(handle);
}

BytesPerSecond copy_rate(const void* from, void* to, cudaMemcpyKind kind, const Stream& stream) {
  std::vector<Seconds> times;
  Event start;
  Event end;
  for (int i = 0; i < kCopies; ++i) {
    start.record(stream);
    SIMSYNC_CUDA(cudaMemcpyAsync(to, from, static_cast<std::size_t>(kCopyBytes.count), kind, stream.get()));
    end.record(stream);
    end.wait();
    times.push_back(end.since(start));
  }
  std::sort(times.begin(), times.end());
  return BytesPerSecond{static_cast<double>(kCopyBytes.count) / times[kCopies / 2].value()};
}

class CudaBackend final : public Backend {
public:
  CudaBackend(int index, const Precision& precision) : info_(take_device(index)), pool_(kPoolBytes, allocate) {
    context_.precision = precision;
    context_.cudnn = make_cudnn(context_.stream);
    context_.lt = make_lt();
  }

  [[nodiscard]] DeviceDescription device() const override {
    const std::size_t cudnn = cudnnGetVersion();
    const std::size_t lt = cublasLtGetVersion();
    return {info_.name, fmt::format("CUDA {}, cuDNN {}.{}.{}, cuBLASLt {}.{}.{}", runtime_version(), cudnn / 10000,
                                    cudnn % 10000 / 100, cudnn % 100, lt / 10000, lt % 10000 / 100, lt % 100)};
  }
  [[nodiscard]] std::int64_t element_bytes() const override { return context_.precision.bytes; }

  std::unique_ptr<Kernel> convolution(const Convolution& geometry, std::int64_t batch, ConvolutionPass pass) override {
    return make_convolution(geometry, batch, pass, context_, pool_);
  }
  std::unique_ptr<Kernel> gemm(const Gemm& gemm) override { return make_gemm(gemm, context_, pool_); }
  std::unique_ptr<Kernel> stream(Bytes size) override { return std::make_unique<StreamKernel>(size, context_, pool_); }

  std::vector<Seconds> run(const std::vector<const Stage*>& stages) override {
    while (stamps_.size() <= stages.size()) stamps_.emplace_back();
    SIMSYNC_CUDA(cudaDeviceSynchronize());
    stamps_.front().record(context_.stream);
    for (std::size_t i = 0; i < stages.size(); ++i) {
      launch(*stages[i]);
      stamps_[i + 1].record(context_.stream);
    }
    context_.stream.wait();
    std::vector<Seconds> times;
    for (std::size_t i = 0; i < stages.size(); ++i) times.push_back(stamps_[i + 1].since(stamps_[i]));
    return times;
  }

  Seconds run_whole(const std::vector<const Stage*>& stages) override {
    SIMSYNC_CUDA(cudaDeviceSynchronize());
    Event start;
    Event end;
    start.record(context_.stream);
    for (const Stage* stage : stages) launch(*stage);
    end.record(context_.stream);
    end.wait();
    return end.since(start);
  }

  std::optional<HostBandwidth> host_bandwidth() override {
    const PinnedBuffer host(kCopyBytes);
    const DeviceBuffer device(kCopyBytes);
    return HostBandwidth{copy_rate(host.data(), device.data(), cudaMemcpyHostToDevice, context_.stream),
                         copy_rate(device.data(), host.data(), cudaMemcpyDeviceToHost, context_.stream)};
  }

private:
  static void launch(const Stage& stage) {
    for (const auto& [kernel, times] : stage.kernels) {
      for (std::int64_t i = 0; i < times; ++i) kernel->launch();
    }
  }

  DeviceInfo info_;
  BufferPool pool_;
  Context context_;
  std::vector<Event> stamps_;
};

}  // namespace
}  // namespace simsync::cuda

simsync::Backend* simsync_make_cuda_backend(const std::string& device, const std::string& precision) {
  using namespace simsync::cuda;
  const Precision wanted = precision_of(precision);
  return std::make_unique<CudaBackend>(parse_device(device), wanted).release();
}
