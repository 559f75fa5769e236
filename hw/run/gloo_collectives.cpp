#include <fmt/format.h>
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <chrono>
#include <map>

#include "base/error.hpp"
#include "hw/run/collectives.hpp"
#include "strategies/names.hpp"

namespace simsync {
namespace {

/// Gloo's view of our table.
class StoreAdapter : public gloo::rendezvous::Store {
public:
  explicit StoreAdapter(KeyValueStore& store) : store_(store) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    store_.set(key, std::string(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = store_.get(key);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const auto& key : keys) (void)store_.get(key);
  }

private:
  KeyValueStore& store_;
};

class GlooCollectives : public CollectiveBackend {
public:
  GlooCollectives(const CollectiveRequest& request, KeyValueStore& store) {
    gloo::transport::tcp::attr attr;
    attr.hostname = request.address;
    device_ = gloo::transport::tcp::CreateDevice(attr);
    auto context = std::make_shared<gloo::rendezvous::Context>(request.rank, request.ranks);
    context->setTimeout(std::chrono::milliseconds(static_cast<std::int64_t>(1000.0 * request.timeout_s)));
    StoreAdapter adapter(store);
    context->connectFullMesh(adapter, device_);
    context_ = context;
  }

  void prepare(const Op& op, std::uint32_t tag, const CollectiveBuffers& buffers) override {
    if (op.grouping != kWholeJob)
      throw CapabilityError("real runs have collectives over all ranks, not over groups of them");
    if (op.collective().primitive == CollectivePrimitive::AllGather) return;
    if (op.collective().primitive != CollectivePrimitive::AllReduce)
      throw CapabilityError(fmt::format("Gloo has no {}", name_of(op.collective().primitive)));
    if (op.collective().algorithm == CollectiveAlgorithm::HalvingDoubling) {
      // Its buffers are registered once, in the same order everywhere.
      halving_doubling_[tag] = std::make_unique<gloo::AllreduceHalvingDoubling<float>>(
          context_, std::vector<float*>{buffers.out.data()}, static_cast<int>(buffers.out.size()));
    } else if (op.collective().algorithm != CollectiveAlgorithm::Ring &&
               op.collective().algorithm != CollectiveAlgorithm::Hierarchical) {
      throw CapabilityError(fmt::format(
          "Gloo has no all-reduce by {}: ring and halving-doubling run for real (--set strategy.algorithm=ring)",
          name_of(op.collective().algorithm)));
    }
  }

  void run(const Op& op, std::uint32_t tag, const CollectiveBuffers& buffers, bool /*whole*/) override {
    const auto in = buffers.in;
    const auto out = buffers.out;
    if (op.collective().primitive == CollectivePrimitive::AllGather) return all_gather(tag, in, out);
    const auto algorithm = halving_doubling_.find(tag);
    if (algorithm != halving_doubling_.end()) {
      std::copy(in.begin(), in.end(), out.begin());  // it works in place
      algorithm->second->run();
      return;
    }
    gloo::AllreduceOptions options(context_);
    options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    options.setInput(in.data(), in.size());
    options.setOutput(out.data(), out.size());
    options.setReduceFunction(static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
    options.setTag(tag);
    gloo::allreduce(options);
  }

private:
  void all_gather(std::uint32_t tag, std::span<float> in, std::span<float> out) {
    gloo::AllgatherOptions options(context_);
    options.setInput(in.data(), in.size());
    options.setOutput(out.data(), out.size());
    options.setTag(tag);
    gloo::allgather(options);
  }

  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<gloo::Context> context_;
  std::map<std::uint32_t, std::unique_ptr<gloo::AllreduceHalvingDoubling<float>>> halving_doubling_;
};

}  // namespace

std::unique_ptr<CollectiveBackend> make_gloo(const CollectiveRequest& request, KeyValueStore& store) {
  try {
    return std::make_unique<GlooCollectives>(request, store);
  } catch (const std::exception& e) {
    throw CapabilityError(fmt::format("rank {} cannot join the others through Gloo: {}", request.rank, e.what()));
  }
}

}  // namespace simsync
