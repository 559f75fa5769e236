// Collectives of a run between the GPUs of its ranks.
#pragma once
#include <memory>

#include "hw/run/rank_device.hpp"

namespace simsync::cuda {

/// Joins all ranks on the calling thread's GPU, `gpu`. Which algorithm and protocol runs is NCCL's choice, as it is in
/// training. @throws CapabilityError, DeviceError.
std::unique_ptr<CollectiveBackend> make_nccl(const CollectiveRequest& request, KeyValueStore& store, int gpu);

}  // namespace simsync::cuda
