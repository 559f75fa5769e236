// One collective of one rank over Gloo's connections, with the memory that it uses in every step.
#pragma once
#include <gloo/context.h>

#include <cstdint>
#include <memory>
#include <span>

#include "hw/run/collectives.hpp"
#include "sim/plan/bodies.hpp"

namespace simsync {

class GlooCall {
public:
  virtual ~GlooCall() = default;
  /// Takes `in` and `out` of the buffers that it was made for. Returns when `out` is complete and all is sent.
  virtual void run(std::span<float> in, std::span<float> out) = 0;
};

/// All-reduce is Gloo's own, by ring or halving-doubling. The other primitives are ours, from messages between two
/// ranks, because of Gloo's own the reduce-scatter is of an older interface, the all-gather tells of its receives after
/// it has begun to send, and the broadcast and the reduce are not pipelined. Ours tell of all receives first: Gloo
/// tells the sender on the connection that carries data the other way, where the notice would wait behind the data.
///
///   reduce-scatter, all-gather   ring: P-1 rounds, each rank sends to the next and receives from the one before
///   broadcast, reduce            chain along the ring that begins, or ends, at the root, in chain_chunks() messages
///   all-to-all                   one message to every other rank, all at a time
///   send/receive                 the root to the other rank of two, in chain_chunks() messages
///
/// `tag` tells the collectives of one context apart. @throws CapabilityError for an all-reduce that Gloo lacks.
std::unique_ptr<GlooCall> make_gloo_call(const std::shared_ptr<gloo::Context>& context, std::uint32_t tag,
                                         const Collective& what, const CollectiveBuffers& buffers);

}  // namespace simsync
