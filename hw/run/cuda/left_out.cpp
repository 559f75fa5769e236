#include "base/error.hpp"
#include "hw/run/rank_device.hpp"

namespace simsync {

DeviceOfRank make_gpu(const DeviceRequest&, KeyValueStore&) {
  throw CapabilityError("this build cannot run on GPUs: CUDA, NCCL or cuDNN was not found");
}

}  // namespace simsync
