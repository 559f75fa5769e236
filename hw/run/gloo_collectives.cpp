#include <fmt/format.h>
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
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

/// On a ring: in each of P-1 rounds a rank passes on a part of the sum, to which the next one adds its own. Parts are
/// cut, so that a piece is added while others travel. (Gloo has only the recursive halving of its older interface.)
class RingReduceScatter {
public:
  /// `length`: floats of the output; the input has one such part for every rank.
  RingReduceScatter(Context context, std::uint32_t tag, std::size_t length)
      : context_(std::move(context)), tag_(tag), length_(length), parts_(static_cast<std::size_t>(context_->size)) {
    for (Part& part : parts_) {
      part.values.resize(length);
      part.wire = context_->createUnboundBuffer(part.values.data(), length * sizeof(float));
    }
  }

  void run(std::span<const float> in, std::span<float> out) {
    const std::size_t ranks = parts_.size();
    const auto rank = static_cast<std::size_t>(context_->rank);
    const auto own = [&](std::size_t number) { return in.subspan((number % ranks) * length_, length_); };
    // Gloo tells the sender of a receive on the connection that also carries data the other way: before any of it.
    for (std::size_t round = 1; round < ranks; ++round)
      for (std::size_t piece = 0; piece < pieces(); ++piece)
        parts_[round].wire->recv(neighbor(-1), slot(round, piece), begin_of(piece), bytes_of(piece));
    const auto first = own(rank + ranks - 1);
    std::copy(first.begin(), first.end(), parts_[0].values.begin());
    for (std::size_t piece = 0; piece < pieces(); ++piece) send(0, piece);
    for (std::size_t round = 1; round < ranks; ++round) {
      Part& part = parts_[round];
      const auto added = own(rank + 2 * ranks - 1 - round);
      for (std::size_t piece = 0; piece < pieces(); ++piece) {
        part.wire->waitRecv(context_->getTimeout());
        const std::size_t end = std::min(length_, (piece + 1) * kPiece);
        for (std::size_t i = piece * kPiece; i < end; ++i) part.values[i] += added[i];
        if (round + 1 < ranks) send(round, piece);
      }
    }
    std::copy(parts_.back().values.begin(), parts_.back().values.end(), out.begin());
    for (std::size_t round = 0; round + 1 < ranks; ++round)
      for (std::size_t piece = 0; piece < pieces(); ++piece) parts_[round].wire->waitSend(context_->getTimeout());
  }

private:
  static constexpr std::size_t kPiece = 1 << 18;  // floats: 1 MiB
  /// What is sent in the first round, and what comes in each and is sent in the next.
  struct Part {
    std::vector<float> values;
    std::unique_ptr<gloo::transport::UnboundBuffer> wire;
  };

  [[nodiscard]] std::size_t pieces() const { return (length_ + kPiece - 1) / kPiece; }
  [[nodiscard]] static std::size_t begin_of(std::size_t piece) { return piece * kPiece * sizeof(float); }
  [[nodiscard]] std::size_t bytes_of(std::size_t piece) const {
    return (std::min(length_, (piece + 1) * kPiece) - piece * kPiece) * sizeof(float);
  }
  [[nodiscard]] int neighbor(int distance) const {
    return (context_->rank + distance + context_->size) % context_->size;
  }
  /// Of a piece that comes in this round.
  [[nodiscard]] std::uint64_t slot(std::size_t round, std::size_t piece) const {
    constexpr std::uint8_t kPrefix = 0x40;
    const std::uint64_t base = gloo::Slot::build(kPrefix, tag_);  // with 24 bits of room
    return base + round * pieces() + piece;
  }
  /// What came in `round`; it comes to the next rank a round later.
  void send(std::size_t round, std::size_t piece) {
    parts_[round].wire->send(neighbor(1), slot(round + 1, piece), begin_of(piece), bytes_of(piece));
  }

  Context context_;
  std::uint32_t tag_;
  std::size_t length_;
  std::vector<Part> parts_;  ///< by round
};

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
    if (op.collective().primitive == CollectivePrimitive::ReduceScatter)
      reduce_scatter_[tag] = std::make_unique<RingReduceScatter>(contexts_.at(op.grouping), tag, buffers.out.size());
    if (op.collective().primitive != CollectivePrimitive::AllReduce) return;
    if (op.collective().algorithm == CollectiveAlgorithm::HalvingDoubling) {
      // Its buffers are registered once, in the same order everywhere.
      halving_doubling_[tag] = std::make_unique<gloo::AllreduceHalvingDoubling<float>>(
          contexts_.at(op.grouping), std::vector<float*>{buffers.out.data()}, static_cast<int>(buffers.out.size()));
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
    const Context& context = contexts_.at(op.grouping);
    if (op.collective().primitive == CollectivePrimitive::AllGather) return all_gather(context, tag, in, out);
    if (op.collective().primitive == CollectivePrimitive::ReduceScatter) return reduce_scatter_.at(tag)->run(in, out);
    const auto algorithm = halving_doubling_.find(tag);
    if (algorithm != halving_doubling_.end()) {
      std::copy(in.begin(), in.end(), out.begin());  // it works in place
      algorithm->second->run();
      return;
    }
    gloo::AllreduceOptions options(context);
    options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    options.setInput(in.data(), in.size());
    options.setOutput(out.data(), out.size());
    options.setReduceFunction(static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
    options.setTag(tag);
    gloo::allreduce(options);
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

  static void all_gather(const Context& context, std::uint32_t tag, std::span<float> in, std::span<float> out) {
    gloo::AllgatherOptions options(context);
    options.setInput(in.data(), in.size());
    options.setOutput(out.data(), out.size());
    options.setTag(tag);
    gloo::allgather(options);
  }

  CollectiveRequest request_;
  KeyValueStore& store_;
  std::shared_ptr<gloo::transport::Device> device_;
  std::map<GroupingId, Context> contexts_;
  std::map<std::uint32_t, std::unique_ptr<RingReduceScatter>> reduce_scatter_;
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
