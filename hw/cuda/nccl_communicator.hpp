// Collectives between the GPUs of several processes, 32-bit floats.
#pragma once
#include <nccl.h>

#include <array>
#include <cstddef>
#include <memory>
#include <type_traits>

#include "hw/cuda/handles.hpp"

namespace simsync::cuda {

/// Names a group; rank 0 makes one and hands it to the others by a way of its own (a file, a socket, gRPC).
using NcclId = std::array<std::byte, NCCL_UNIQUE_ID_BYTES>;
NcclId make_nccl_id();

/// One rank of a group. Every call starts its collective on `stream` and returns; all ranks must make the same calls
/// in the same order. Buffers must stay until the stream has passed the call.
///
/// Bytes on the wire per rank for n ranks and S bytes (ring): all-reduce 2 (n - 1) / n S, reduce-scatter and
/// all-gather (n - 1) / n S with S the larger of the two buffers, all-to-all (n - 1) / n S, send and receive S; each
/// hop of the chain of a broadcast or reduce S.
class NcclCommunicator {
public:
  /// Blocks until all `size` ranks have come. Uses the current device. @throws DeviceError, PlanError for a wrong rank.
  NcclCommunicator(const NcclId& id, int rank, int size);

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }

  /// Sums `count` floats of every rank into `out` of every rank; `out` may be `in`.
  void all_reduce(const float* in, float* out, std::size_t count, const Stream& stream);
  /// Sums size() x `count` floats; rank r keeps the r-th `count` of them.
  void reduce_scatter(const float* in, float* out, std::size_t count, const Stream& stream);
  /// Joins `count` floats of every rank in the order of ranks.
  void all_gather(const float* in, float* out, std::size_t count, const Stream& stream);
  /// `count` floats of rank `root` into `out` of every rank.
  void broadcast(const float* in, float* out, std::size_t count, int root, const Stream& stream);
  /// Sums `count` floats of every rank into `out` of rank `root`; the others' `out` is not touched.
  void reduce(const float* in, float* out, std::size_t count, int root, const Stream& stream);
  /// `in` has `count` floats for every rank, in the order of ranks, and `out` those that each has for this one.
  void all_to_all(const float* in, float* out, std::size_t count, const Stream& stream);
  void send(const float* in, std::size_t count, int peer, const Stream& stream);
  void receive(float* out, std::size_t count, int peer, const Stream& stream);

  /// @throws DeviceError when a collective has failed since, because a peer died for example. Never blocks.
  void check_health() const;
  /// Ends collectives that hang because a peer is gone; the communicator cannot be used any more.
  void abort();

private:
  struct Destroy {
    void operator()(ncclComm_t comm) const { ncclCommDestroy(comm); }
  };
  int rank_;
  int size_;
  std::unique_ptr<std::remove_pointer_t<ncclComm_t>, Destroy> comm_;
};

}  // namespace simsync::cuda
