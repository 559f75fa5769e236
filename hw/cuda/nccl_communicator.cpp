#include "hw/cuda/nccl_communicator.hpp"

#include <fmt/format.h>

#include <cstring>

#include "base/error.hpp"
#include "hw/cuda/check.hpp"

namespace simsync::cuda {

NcclId make_nccl_id() {
  ncclUniqueId id{};
  SIMSYNC_CUDA(ncclGetUniqueId(&id));
  NcclId bytes{};
  static_assert(sizeof(id) == sizeof(bytes));
  std::memcpy(bytes.data(), &id, sizeof(id));
  return bytes;
}

NcclCommunicator::NcclCommunicator(const NcclId& id, int rank, int size) : rank_(rank), size_(size) {
  if (size < 1 || rank < 0 || rank >= size)
    throw PlanError(fmt::format("rank {} is not one of a group of {}", rank, size));
  ncclUniqueId handed_over{};
  std::memcpy(&handed_over, id.data(), sizeof(handed_over));
  ncclComm_t comm = nullptr;
  SIMSYNC_CUDA(ncclCommInitRank(&comm, size, handed_over, rank));
  comm_.reset(comm);
}

void NcclCommunicator::all_reduce(const float* in, float* out, std::size_t count, const Stream& stream) {
  SIMSYNC_CUDA(ncclAllReduce(in, out, count, ncclFloat, ncclSum, comm_.get(), stream.get()));
}

void NcclCommunicator::reduce_scatter(const float* in, float* out, std::size_t count, const Stream& stream) {
  SIMSYNC_CUDA(ncclReduceScatter(in, out, count, ncclFloat, ncclSum, comm_.get(), stream.get()));
}

void NcclCommunicator::all_gather(const float* in, float* out, std::size_t count, const Stream& stream) {
  SIMSYNC_CUDA(ncclAllGather(in, out, count, ncclFloat, comm_.get(), stream.get()));
}

void NcclCommunicator::broadcast(const float* in, float* out, std::size_t count, int root, const Stream& stream) {
  SIMSYNC_CUDA(ncclBroadcast(in, out, count, ncclFloat, root, comm_.get(), stream.get()));
}

void NcclCommunicator::reduce(const float* in, float* out, std::size_t count, int root, const Stream& stream) {
  SIMSYNC_CUDA(ncclReduce(in, out, count, ncclFloat, ncclSum, root, comm_.get(), stream.get()));
}

void NcclCommunicator::all_to_all(const float* in, float* out, std::size_t count, const Stream& stream) {
  SIMSYNC_CUDA(ncclGroupStart());
  for (int peer = 0; peer < size_; ++peer) {
    const std::size_t at = static_cast<std::size_t>(peer) * count;
    send(in + at, count, peer, stream);
    receive(out + at, count, peer, stream);
  }
  SIMSYNC_CUDA(ncclGroupEnd());
}

void NcclCommunicator::send(const float* in, std::size_t count, int peer, const Stream& stream) {
  SIMSYNC_CUDA(ncclSend(in, count, ncclFloat, peer, comm_.get(), stream.get()));
}

void NcclCommunicator::receive(float* out, std::size_t count, int peer, const Stream& stream) {
  SIMSYNC_CUDA(ncclRecv(out, count, ncclFloat, peer, comm_.get(), stream.get()));
}

void NcclCommunicator::check_health() const {
  ncclResult_t state = ncclSuccess;
  SIMSYNC_CUDA(ncclCommGetAsyncError(comm_.get(), &state));
  check(state, "a collective");
}

void NcclCommunicator::abort() {
  if (comm_) SIMSYNC_CUDA(ncclCommAbort(comm_.release()));
}

}  // namespace simsync::cuda
