#include "hw/run/gloo_calls.hpp"

#include <fmt/format.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/math.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "strategies/names.hpp"

namespace simsync {
namespace {

using Context = std::shared_ptr<gloo::Context>;

/// Memory that is sent and received in pieces, the last of which may be shorter.
class PieceBuffer {
public:
  PieceBuffer(Context context, std::span<float> values, std::size_t piece)
      : context_(std::move(context)),
        values_(values),
        piece_(piece),
        wire_(context_->createUnboundBuffer(values.data(), values.size_bytes())) {}

  [[nodiscard]] std::size_t count() const { return (values_.size() + piece_ - 1) / piece_; }
  [[nodiscard]] std::size_t begin(std::size_t number) const { return number * piece_; }
  [[nodiscard]] std::span<float> operator[](std::size_t number) const {
    return values_.subspan(begin(number), std::min(piece_, values_.size() - begin(number)));
  }
  /// Tells the sender of all of them. `slot`: that of the first piece.
  void receive(int from, std::uint64_t slot) {
    for (std::size_t i = 0; i < count(); ++i)
      wire_->recv(from, slot + i, begin(i) * sizeof(float), (*this)[i].size_bytes());
  }
  /// Until the next piece has come. They come in order.
  void wait_received() { wire_->waitRecv(context_->getTimeout()); }
  void send(std::size_t number, int to, std::uint64_t slot) {
    wire_->send(to, slot + number, begin(number) * sizeof(float), (*this)[number].size_bytes());
    ++under_way_;
  }
  void wait_sent() {
    for (; under_way_ > 0; --under_way_) wire_->waitSend(context_->getTimeout());
  }

private:
  Context context_;
  std::span<float> values_;
  std::size_t piece_;
  std::unique_ptr<gloo::transport::UnboundBuffer> wire_;
  std::size_t under_way_ = 0;
};

constexpr std::size_t kRingPiece = 1 << 18;  // floats: 1 MiB

std::uint64_t first_slot(std::uint32_t tag) {
  constexpr std::uint8_t kPrefix = 0x40;   // none of Gloo's own
  return gloo::Slot::build(kPrefix, tag);  // with 24 bits of room
}

/// The rank that is `distance` further on the ring.
int neighbor(const Context& context, int distance) {
  return (context->rank + distance + context->size) % context->size;  // distance from -size on
}

void add(std::span<float> to, std::span<const float> what) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += what[i];
}

/// In each of P-1 rounds a rank passes on a part of the sum, to which the next one adds its own. Parts are cut, so that
/// a piece is added while others travel.
class RingReduceScatter : public GlooCall {
public:
  /// `length`: floats of the output; the input has one such part for every rank.
  RingReduceScatter(const Context& context, std::uint32_t tag, std::size_t length)
      : context_(context), slot_(first_slot(tag)), length_(length), values_(static_cast<std::size_t>(context->size)) {
    for (auto& of_round : values_) {
      of_round.resize(length);
      parts_.emplace_back(context, of_round, kRingPiece);
    }
  }

  void run(std::span<float> in, std::span<float> out) override {
    const std::size_t ranks = parts_.size();
    const auto rank = static_cast<std::size_t>(context_->rank);
    const auto own = [&](std::size_t number) { return in.subspan((number % ranks) * length_, length_); };
    for (std::size_t round = 1; round < ranks; ++round) parts_[round].receive(neighbor(context_, -1), slot_of(round));
    const auto first = own(rank + ranks - 1);
    std::copy(first.begin(), first.end(), values_[0].begin());
    for (std::size_t piece = 0; piece < parts_[0].count(); ++piece) send(0, piece);
    for (std::size_t round = 1; round < ranks; ++round) {
      const auto added = own(rank + 2 * ranks - 1 - round);
      for (std::size_t piece = 0; piece < parts_[round].count(); ++piece) {
        parts_[round].wait_received();
        add(parts_[round][piece], added.subspan(parts_[round].begin(piece)));
        if (round + 1 < ranks) send(round, piece);
      }
    }
    std::copy(values_.back().begin(), values_.back().end(), out.begin());
    for (PieceBuffer& part : parts_) part.wait_sent();
  }

private:
  [[nodiscard]] std::uint64_t slot_of(std::size_t round) const { return slot_ + round * parts_.front().count(); }
  /// What came in `round`; it comes to the next rank a round later.
  void send(std::size_t round, std::size_t piece) {
    parts_[round].send(piece, neighbor(context_, 1), slot_of(round + 1));
  }

  Context context_;
  std::uint64_t slot_;
  std::size_t length_;
  std::vector<std::vector<float>> values_;  ///< by round: what is sent in the first, and what comes in each
  std::vector<PieceBuffer> parts_;          ///< the same
};

/// In each of P-1 rounds a rank passes on the contribution that came in the round before, its own first.
class RingAllGather : public GlooCall {
public:
  RingAllGather(const Context& context, std::uint32_t tag, std::span<float> out)
      : context_(context), slot_(first_slot(tag)) {
    const auto ranks = static_cast<std::size_t>(context->size);
    for (std::size_t rank = 0; rank < ranks; ++rank)
      parts_.emplace_back(context, out.subspan(rank * (out.size() / ranks), out.size() / ranks), kRingPiece);
  }

  void run(std::span<float> in, std::span<float> out) override {
    const std::size_t ranks = parts_.size();
    const auto rank = static_cast<std::size_t>(context_->rank);
    const auto came_in = [&](std::size_t round) -> PieceBuffer& { return parts_[(rank + ranks - round) % ranks]; };
    for (std::size_t round = 1; round < ranks; ++round) came_in(round).receive(neighbor(context_, -1), slot_of(round));
    std::copy(in.begin(), in.end(), out.subspan(rank * in.size()).begin());
    for (std::size_t round = 0; round < ranks; ++round) {
      PieceBuffer& part = came_in(round);
      for (std::size_t piece = 0; piece < part.count(); ++piece) {
        if (round > 0) part.wait_received();
        if (round + 1 < ranks) part.send(piece, neighbor(context_, 1), slot_of(round + 1));
      }
    }
    for (PieceBuffer& part : parts_) part.wait_sent();
  }

private:
  [[nodiscard]] std::uint64_t slot_of(std::size_t round) const { return slot_ + round * parts_.front().count(); }

  Context context_;
  std::uint64_t slot_;
  std::vector<PieceBuffer> parts_;  ///< of the output, by rank
};

/// Floats of one message of a chain.
std::size_t chain_piece(std::size_t floats) {
  const auto chunks = static_cast<std::size_t>(chain_chunks(static_cast<double>(floats * sizeof(float))));
  return (floats + chunks - 1) / chunks;
}

/// The ring cut open before the root: each rank passes on to the next one what comes from the one before.
class ChainBroadcast : public GlooCall {
public:
  ChainBroadcast(const Context& context, std::uint32_t tag, int root, std::span<float> out)
      : context_(context),
        slot_(first_slot(tag)),
        place_(neighbor(context, -root)),
        pieces_(context, out, chain_piece(out.size())) {}

  void run(std::span<float> in, std::span<float> out) override {
    if (place_ > 0) pieces_.receive(neighbor(context_, -1), slot_);
    if (place_ == 0) std::copy(in.begin(), in.end(), out.begin());
    for (std::size_t piece = 0; piece < pieces_.count(); ++piece) {
      if (place_ > 0) pieces_.wait_received();
      if (place_ + 1 < context_->size) pieces_.send(piece, neighbor(context_, 1), slot_);
    }
    pieces_.wait_sent();
  }

private:
  Context context_;
  std::uint64_t slot_;
  int place_;  ///< behind the root
  PieceBuffer pieces_;
};

/// The ring cut open behind the root, which is the last: each rank adds its own to what comes and passes it on.
class ChainReduce : public GlooCall {
public:
  ChainReduce(const Context& context, std::uint32_t tag, int root, std::size_t floats)
      : context_(context),
        slot_(first_slot(tag)),
        place_(neighbor(context, -root - 1)),
        sum_(floats),
        pieces_(context, sum_, chain_piece(floats)) {}

  void run(std::span<float> in, std::span<float> out) override {
    const bool root = place_ + 1 == context_->size;
    if (place_ > 0) pieces_.receive(neighbor(context_, -1), slot_);
    if (place_ == 0) std::copy(in.begin(), in.end(), sum_.begin());
    for (std::size_t piece = 0; piece < pieces_.count(); ++piece) {
      if (place_ > 0) {
        pieces_.wait_received();
        add(pieces_[piece], in.subspan(pieces_.begin(piece)));
      }
      if (!root) pieces_.send(piece, neighbor(context_, 1), slot_);
    }
    pieces_.wait_sent();
    if (root) std::copy(sum_.begin(), sum_.end(), out.begin());
  }

private:
  Context context_;
  std::uint64_t slot_;
  int place_;  ///< on the chain
  std::vector<float> sum_;
  PieceBuffer pieces_;
};

/// Every rank sends every other one its part, the next one first.
class PairwiseAllToAll : public GlooCall {
public:
  PairwiseAllToAll(const Context& context, std::uint32_t tag, const CollectiveBuffers& buffers)
      : context_(context),
        slot_(first_slot(tag)),
        length_(buffers.in.size() / static_cast<std::size_t>(context->size)) {
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(context->size); ++rank) {
      in_.emplace_back(context, buffers.in.subspan(rank * length_, length_), length_);
      out_.emplace_back(context, buffers.out.subspan(rank * length_, length_), length_);
    }
  }

  void run(std::span<float> /*in*/, std::span<float> /*out*/) override {
    const auto at = [](std::vector<PieceBuffer>& parts, int rank) -> PieceBuffer& {
      return parts[static_cast<std::size_t>(rank)];
    };
    for (int distance = 1; distance < context_->size; ++distance)
      at(out_, neighbor(context_, -distance)).receive(neighbor(context_, -distance), slot_);
    for (int distance = 1; distance < context_->size; ++distance)
      at(in_, neighbor(context_, distance)).send(0, neighbor(context_, distance), slot_);
    const auto own = at(in_, context_->rank)[0];
    std::copy(own.begin(), own.end(), at(out_, context_->rank)[0].begin());
    for (int distance = 1; distance < context_->size; ++distance) {
      at(out_, neighbor(context_, -distance)).wait_received();
      at(in_, neighbor(context_, distance)).wait_sent();
    }
  }

private:
  Context context_;
  std::uint64_t slot_;
  std::size_t length_;
  std::vector<PieceBuffer> in_;   ///< by receiver
  std::vector<PieceBuffer> out_;  ///< by sender
};

class RingAllReduce : public GlooCall {
public:
  RingAllReduce(Context context, std::uint32_t tag) : context_(std::move(context)), tag_(tag) {}

  void run(std::span<float> in, std::span<float> out) override {
    gloo::AllreduceOptions options(context_);
    options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    options.setInput(in.data(), in.size());
    options.setOutput(out.data(), out.size());
    options.setReduceFunction(static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
    options.setTag(tag_);
    gloo::allreduce(options);
  }

private:
  Context context_;
  std::uint32_t tag_;
};

/// Works in place. Its buffers are registered once, in the same order everywhere.
class HalvingDoubling : public GlooCall {
  using Algorithm = gloo::AllreduceHalvingDoubling<float>;

public:
  HalvingDoubling(const Context& context, std::span<float> out)
      : algorithm_(
            std::make_unique<Algorithm>(context, std::vector<float*>{out.data()}, static_cast<int>(out.size()))) {}

  void run(std::span<float> in, std::span<float> out) override {
    std::copy(in.begin(), in.end(), out.begin());
    algorithm_->run();
  }

private:
  std::unique_ptr<Algorithm> algorithm_;
};

std::unique_ptr<GlooCall> make_all_reduce(const Context& context, std::uint32_t tag, CollectiveAlgorithm algorithm,
                                          std::span<float> out) {
  if (algorithm == CollectiveAlgorithm::HalvingDoubling) return std::make_unique<HalvingDoubling>(context, out);
  if (algorithm == CollectiveAlgorithm::Ring || algorithm == CollectiveAlgorithm::Hierarchical)
    return std::make_unique<RingAllReduce>(context, tag);
  throw CapabilityError(fmt::format(
      "Gloo has no all-reduce by {}: ring and halving-doubling run for real (--set strategy.algorithm=ring)",
      name_of(algorithm)));
}

}  // namespace

std::unique_ptr<GlooCall> make_gloo_call(const std::shared_ptr<gloo::Context>& context, std::uint32_t tag,
                                         const Collective& what, const CollectiveBuffers& buffers) {
  switch (what.primitive) {
    case CollectivePrimitive::AllReduce:
      break;
    case CollectivePrimitive::ReduceScatter:
      return std::make_unique<RingReduceScatter>(context, tag, buffers.out.size());
    case CollectivePrimitive::AllGather:
      return std::make_unique<RingAllGather>(context, tag, buffers.out);
    case CollectivePrimitive::Broadcast:
    case CollectivePrimitive::SendReceive:
      return std::make_unique<ChainBroadcast>(context, tag, what.root, buffers.out);
    case CollectivePrimitive::Reduce:
      return std::make_unique<ChainReduce>(context, tag, what.root, buffers.in.size());
    case CollectivePrimitive::AllToAll:
      return std::make_unique<PairwiseAllToAll>(context, tag, buffers);
  }
  return make_all_reduce(context, tag, what.algorithm, buffers.out);
}

}  // namespace simsync
