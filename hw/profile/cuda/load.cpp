#include "base/module.hpp"
#include "hw/profile/cuda/module.hpp"

namespace simsync {

std::unique_ptr<Backend> make_cuda_backend(const std::string& device, const std::string& precision) {
  static void* const kMake = symbol_of({SIMSYNC_MODULE_FROM_BIN, SIMSYNC_MODULE_BUILT, "the GPU profiler"},
                                       "simsync_make_cuda_backend");
  return std::unique_ptr<Backend>(reinterpret_cast<decltype(&simsync_make_cuda_backend)>(kMake)(device, precision));
}

}  // namespace simsync
