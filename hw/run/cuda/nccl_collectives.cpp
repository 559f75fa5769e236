#include "hw/run/cuda/nccl_collectives.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <map>
#include <thread>

#include "base/error.hpp"
#include "hw/cuda/check.hpp"
#include "hw/cuda/kernels.hpp"
#include "hw/cuda/nccl_communicator.hpp"

namespace simsync::cuda {
namespace {

Bytes size_of(std::size_t count, std::size_t each) {
  return {static_cast<std::int64_t>(count * each)};
}

/// Some positions of a buffer on the device, and their values where both device and host reach them.
class Samples {
public:
  explicit Samples(const std::vector<std::size_t>& positions)
      : count_(static_cast<int>(positions.size())),
        positions_(size_of(positions.size(), sizeof(std::int64_t))),
        values_(size_of(positions.size(), sizeof(float))) {
    for (std::size_t i = 0; i < positions.size(); ++i) position(i) = static_cast<std::int64_t>(positions[i]);
  }

  void to_device(std::span<const float> host, const DeviceBuffer& device, const Stream& stream) {
    for (std::size_t i = 0; i < size(); ++i) values_.floats()[i] = host[static_cast<std::size_t>(position(i))];
    launch_scatter(values_.floats(), positions(), count_, device.floats(), stream.get());
  }
  /// `to_host` has them once the stream has passed.
  void gather(const DeviceBuffer& device, const Stream& stream) {
    launch_gather(device.floats(), positions(), count_, values_.floats(), stream.get());
  }
  void to_host(std::span<float> host) {
    for (std::size_t i = 0; i < size(); ++i) host[static_cast<std::size_t>(position(i))] = values_.floats()[i];
  }

private:
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(count_); }
  [[nodiscard]] std::int64_t* positions() const { return static_cast<std::int64_t*>(positions_.data()); }
  [[nodiscard]] std::int64_t& position(std::size_t i) const { return positions()[i]; }

  int count_;
  PinnedBuffer positions_;
  PinnedBuffer values_;
};

/// One collective: its memory on the device, and the stream and group that it runs in.
struct Call {
  Call(const CollectiveBuffers& buffers, std::shared_ptr<Stream> on, std::shared_ptr<NcclCommunicator> between)
      : in(size_of(buffers.in.size(), sizeof(float))),
        out(size_of(buffers.out.size(), sizeof(float))),
        changing(buffers.changing),
        looked_at(buffers.looked_at),
        stream(std::move(on)),
        group(std::move(between)) {
    SIMSYNC_CUDA(cudaMemcpy(in.data(), buffers.in.data(), buffers.in.size_bytes(), cudaMemcpyHostToDevice));
  }

  DeviceBuffer in;
  DeviceBuffer out;
  Samples changing;
  Samples looked_at;
  Event end;
  std::shared_ptr<Stream> stream;
  std::shared_ptr<NcclCommunicator> group;
};

class NcclCollectives : public CollectiveBackend {
public:
  NcclCollectives(const CollectiveRequest& request, KeyValueStore& store, int gpu)
      : request_(request), store_(store), gpu_(gpu), stream_(std::make_shared<Stream>()), group_(join("nccl")) {}

  void prepare(const Op& op, std::uint32_t tag, const CollectiveBuffers& buffers) override {
    use_device(gpu_);
    if (op.collective().primitive == CollectivePrimitive::ReduceScatter || op.grouping != kWholeJob)
      throw CapabilityError("real runs on GPUs have no reduce-scatter and no groups of ranks yet");
    const bool theirs = op.collective().algorithm == CollectiveAlgorithm::Ring ||
                        op.collective().algorithm == CollectiveAlgorithm::DoubleBinaryTree;
    if (op.collective().primitive == CollectivePrimitive::AllReduce && !theirs)
      throw CapabilityError(
          "NCCL's all-reduce is by ring or by double binary tree, as it chooses itself (--set "
          "strategy.algorithm=auto)");
    // Calls of one group must come in the same order everywhere: what may run beside others has a group of its own.
    const bool beside = op.queue < 0;
    const auto stream = beside ? std::make_shared<Stream>() : stream_;
    const auto group = beside ? join(fmt::format("nccl/{}", tag)) : group_;
    calls_[tag] = std::make_unique<Call>(buffers, stream, group);
  }

  void run(const Op& op, std::uint32_t tag, const CollectiveBuffers& buffers, bool whole) override {
    use_device(gpu_);
    Call& call = *calls_.at(tag);
    call.changing.to_device(buffers.in, call.in, *call.stream);
    if (op.collective().primitive == CollectivePrimitive::AllGather) {
      call.group->all_gather(call.in.floats(), call.out.floats(), buffers.in.size(), *call.stream);
    } else {
      call.group->all_reduce(call.in.floats(), call.out.floats(), buffers.in.size(), *call.stream);
    }
    call.looked_at.gather(call.out, *call.stream);
    call.end.record(*call.stream);
    wait_for(call);
    call.looked_at.to_host(buffers.out);
    if (!whole) return;
    SIMSYNC_CUDA(cudaMemcpy(buffers.out.data(), call.out.data(), buffers.out.size_bytes(), cudaMemcpyDeviceToHost));
  }

private:
  /// A group of all ranks, whose name travels under `key`.
  std::shared_ptr<NcclCommunicator> join(const std::string& key) {
    NcclId id{};
    if (request_.rank == 0) {
      id = make_nccl_id();
      store_.set(key, std::string(reinterpret_cast<const char*>(id.data()), id.size()));
    } else {
      const std::string text = store_.get(key);
      if (text.size() != id.size()) throw DeviceError("the name of the NCCL group came mangled");
      std::memcpy(id.data(), text.data(), id.size());
    }
    return std::make_shared<NcclCommunicator>(id, request_.rank, request_.ranks);
  }

  /// @throws DeviceError when a peer is gone or nothing came in time; the group cannot be used any more.
  void wait_for(const Call& call) const {
    constexpr std::chrono::microseconds kPause{10};
    const auto start = std::chrono::steady_clock::now();
    const std::chrono::duration<double> longest(request_.timeout_s);
    try {
      while (!call.end.done()) {
        call.group->check_health();
        if (std::chrono::steady_clock::now() - start > longest)
          throw DeviceError(
              fmt::format("NCCL did not finish within {} s: a rank is gone or stands still", request_.timeout_s));
        std::this_thread::sleep_for(kPause);
      }
    } catch (const DeviceError&) {
      call.group->abort();
      throw;
    }
  }

  CollectiveRequest request_;
  KeyValueStore& store_;
  int gpu_;
  std::shared_ptr<Stream> stream_;
  std::shared_ptr<NcclCommunicator> group_;
  std::map<std::uint32_t, std::unique_ptr<Call>> calls_;
};

}  // namespace

std::unique_ptr<CollectiveBackend> make_nccl(const CollectiveRequest& request, KeyValueStore& store, int gpu) {
  return std::make_unique<NcclCollectives>(request, store, gpu);
}

}  // namespace simsync::cuda
