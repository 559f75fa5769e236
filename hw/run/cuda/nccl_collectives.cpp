#include "hw/run/cuda/nccl_collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <numeric>
#include <thread>
#include <utility>

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

/// One collective: its memory on the device, and the stream and communicator that it runs in.
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
      : request_(request), store_(store), gpu_(gpu) {}

  void prepare(const Op& op, std::uint32_t tag, const CollectiveBuffers& buffers) override {
    use_device(gpu_);
    const bool theirs = op.collective().algorithm == CollectiveAlgorithm::Ring ||
                        op.collective().algorithm == CollectiveAlgorithm::DoubleBinaryTree;
    if (op.collective().primitive == CollectivePrimitive::AllReduce && !theirs)
      throw CapabilityError(
          "NCCL's all-reduce is by ring or by double binary tree, as it chooses itself (--set "
          "strategy.algorithm=auto)");
    // Calls of one communicator must come in the same order everywhere: what may run beside others has its own.
    const std::string lane = op.queue < 0 ? fmt::format("op{}", tag) : fmt::format("queue{}", op.queue);
    auto& stream = streams_[lane];
    if (!stream) stream = std::make_shared<Stream>();
    auto& group = communicators_[{lane, op.grouping}];
    if (!group) group = join(lane, op.grouping);
    calls_[tag] = std::make_unique<Call>(buffers, stream, group);
  }

  void run(const Op& op, std::uint32_t tag, const CollectiveBuffers& buffers, bool whole) override {
    use_device(gpu_);
    Call& call = *calls_.at(tag);
    call.changing.to_device(buffers.in, call.in, *call.stream);
    start(op.collective(), call, buffers);
    call.looked_at.gather(call.out, *call.stream);
    call.end.record(*call.stream);
    wait_for(call);
    call.looked_at.to_host(buffers.out);
    if (!whole) return;
    SIMSYNC_CUDA(cudaMemcpy(buffers.out.data(), call.out.data(), buffers.out.size_bytes(), cudaMemcpyDeviceToHost));
  }

private:
  static void start(const Collective& what, const Call& call, const CollectiveBuffers& buffers) {
    NcclCommunicator& group = *call.group;
    float* in = call.in.floats();
    float* out = call.out.floats();
    switch (what.primitive) {
      case CollectivePrimitive::AllReduce:
        return group.all_reduce(in, out, buffers.in.size(), *call.stream);
      case CollectivePrimitive::ReduceScatter:
        return group.reduce_scatter(in, out, buffers.out.size(), *call.stream);
      case CollectivePrimitive::AllGather:
        return group.all_gather(in, out, buffers.in.size(), *call.stream);
      case CollectivePrimitive::Broadcast:
        return group.broadcast(in, out, buffers.in.size(), what.root, *call.stream);
      case CollectivePrimitive::Reduce:
        return group.reduce(in, out, buffers.in.size(), what.root, *call.stream);
      case CollectivePrimitive::AllToAll:
        return group.all_to_all(in, out, buffers.in.size() / static_cast<std::size_t>(group.size()), *call.stream);
      case CollectivePrimitive::SendReceive:
        if (group.rank() == what.root) return group.send(in, buffers.in.size(), 1 - what.root, *call.stream);
        return group.receive(out, buffers.out.size(), what.root, *call.stream);
    }
  }

  /// This rank's group of a grouping: its first rank names it, and the name travels under a key of its own.
  std::shared_ptr<NcclCommunicator> join(const std::string& lane, GroupingId grouping) {
    std::vector<int> ranks(static_cast<std::size_t>(request_.ranks));
    std::iota(ranks.begin(), ranks.end(), 0);
    if (grouping != kWholeJob) ranks = request_.groups.at(static_cast<std::size_t>(grouping));
    const auto own = std::find(ranks.begin(), ranks.end(), request_.rank);
    SIMSYNC_ASSERT(own != ranks.end());
    const std::string key = fmt::format("nccl/{}/grouping{}/{}", lane, grouping, ranks.front());
    NcclId id{};
    if (request_.rank == ranks.front()) {
      id = make_nccl_id();
      store_.set(key, std::string(reinterpret_cast<const char*>(id.data()), id.size()));
    } else {
      const std::string text = store_.get(key);
      if (text.size() != id.size()) throw DeviceError("the name of the NCCL group came mangled");
      std::memcpy(id.data(), text.data(), id.size());
    }
    return std::make_shared<NcclCommunicator>(id, static_cast<int>(own - ranks.begin()),
                                              static_cast<int>(ranks.size()));
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
  /// What takes turns on a queue of the plan shares a stream; what takes none has one of its own.
  std::map<std::string, std::shared_ptr<Stream>> streams_;
  std::map<std::pair<std::string, GroupingId>, std::shared_ptr<NcclCommunicator>> communicators_;
  std::map<std::uint32_t, std::unique_ptr<Call>> calls_;
};

}  // namespace

std::unique_ptr<CollectiveBackend> make_nccl(const CollectiveRequest& request, KeyValueStore& store, int gpu) {
  return std::make_unique<NcclCollectives>(request, store, gpu);
}

}  // namespace simsync::cuda
