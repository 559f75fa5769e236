#include "base/module.hpp"
#include "hw/run/cuda/module.hpp"

namespace simsync {

DeviceOfRank make_gpu(const DeviceRequest& request, KeyValueStore& store) {
  static void* const kMake =
      symbol_of({SIMSYNC_MODULE_FROM_BIN, SIMSYNC_MODULE_BUILT, "the GPU runner"}, "simsync_make_gpu");
  DeviceOfRank out;
  reinterpret_cast<decltype(&simsync_make_gpu)>(kMake)(request, store, out);
  return out;
}

}  // namespace simsync
