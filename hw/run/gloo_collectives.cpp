#include <fmt/format.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "base/error.hpp"
#include "hw/run/collectives.hpp"
#include "hw/run/gloo_calls.hpp"

namespace simsync {
namespace {

/// Gloo's view of our table.
class StoreAdapter : public gloo::rendezvous::Store {
public:
  /// Its keys begin with `prefix`.
  StoreAdapter(KeyValueStore& store, std::string prefix) : store_(store), prefix_(std::move(prefix)) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    store_.set(prefix_ + key, std::string(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = store_.get(prefix_ + key);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const auto& key : keys) (void)store_.get(prefix_ + key);
  }

private:
  KeyValueStore& store_;
  std::string prefix_;
};

using Context = std::shared_ptr<gloo::Context>;

class GlooCollectives : public CollectiveBackend {
public:
  GlooCollectives(const CollectiveRequest& request, KeyValueStore& store) : request_(request), store_(store) {
    gloo::transport::tcp::attr attr;
    attr.hostname = request.address;
    device_ = gloo::transport::tcp::CreateDevice(attr);
    contexts_[kWholeJob] = connect(request.rank, request.ranks, {});
  }

  void prepare(const Op& op, std::uint32_t tag, const CollectiveBuffers& buffers) override {
    if (!contexts_.contains(op.grouping)) contexts_[op.grouping] = connect_group(op.grouping);
    calls_[tag] = make_gloo_call(contexts_.at(op.grouping), tag, op.collective(), buffers);
  }

  void run(const Op& /*op*/, std::uint32_t tag, const CollectiveBuffers& buffers, bool /*whole*/) override {
    calls_.at(tag)->run(buffers.in, buffers.out);
  }

private:
  Context connect(int rank, int ranks, const std::string& name) {
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
    context->setTimeout(std::chrono::milliseconds(static_cast<std::int64_t>(1000.0 * request_.timeout_s)));
    StoreAdapter adapter(store_, name);
    context->connectFullMesh(adapter, device_);
    return context;
  }

  /// A communicator of its own for the group of this rank.
  Context connect_group(GroupingId grouping) {
    const std::vector<int>& ranks = request_.groups.at(static_cast<std::size_t>(grouping));
    const auto own = std::find(ranks.begin(), ranks.end(), request_.rank);
    SIMSYNC_ASSERT(own != ranks.end());
    return connect(static_cast<int>(own - ranks.begin()), static_cast<int>(ranks.size()),
                   fmt::format("grouping{}/{}/", grouping, ranks.front()));
  }

  CollectiveRequest request_;
  KeyValueStore& store_;
  std::shared_ptr<gloo::transport::Device> device_;
  std::map<GroupingId, Context> contexts_;
  std::map<std::uint32_t, std::unique_ptr<GlooCall>> calls_;
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
