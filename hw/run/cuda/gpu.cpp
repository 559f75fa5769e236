#include "hw/cuda/check.hpp"
#include "hw/cuda/device_runtime.hpp"
#include "hw/run/cuda/module.hpp"
#include "hw/run/cuda/nccl_collectives.hpp"

namespace simsync::cuda {
namespace {

/// The GPU of a rank's number, or the only one that this process is shown.
int index_of(int gpu) {
  const int shown = device_count();
  return shown == 1 ? 0 : gpu;
}

class Gpu : public RankDevice {
public:
  explicit Gpu(int index) : index_(index), runtime_(index) {}

  void compute(Seconds length) override {
    use_device(index_);
    runtime_.run_compute(length).wait();
  }

  void copy(Bytes size, Direction direction) override {
    use_device(index_);
    if (host_.size() < size) {
      host_ = PinnedBuffer(size);
      device_ = DeviceBuffer(size);
    }
    const auto bytes = static_cast<std::size_t>(size.count);
    if (direction == Direction::ToHost) {
      SIMSYNC_CUDA(cudaMemcpyAsync(host_.data(), device_.data(), bytes, cudaMemcpyDeviceToHost, copies_.get()));
    } else {
      SIMSYNC_CUDA(cudaMemcpyAsync(device_.data(), host_.data(), bytes, cudaMemcpyHostToDevice, copies_.get()));
    }
    copies_.wait();
  }

private:
  int index_;
  DeviceRuntime runtime_;  // makes the GPU the current one for the members below
  Stream copies_;
  PinnedBuffer host_;
  DeviceBuffer device_;
};

}  // namespace
}  // namespace simsync::cuda

void simsync_make_gpu(const simsync::DeviceRequest& request, simsync::KeyValueStore& store,
                      simsync::DeviceOfRank& out) {
  using namespace simsync::cuda;
  const int index = index_of(request.gpu);
  out.device = std::make_unique<Gpu>(index);
  if (request.collectives) out.collectives = make_nccl(request.group, store, index);
}
