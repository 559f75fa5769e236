// Ends the program as skipped, before any test, where there is no GPU.
#include <cstdlib>
#include <iostream>

#include "hw/cuda/device.hpp"

namespace {

bool found_gpu() {
  if (simsync::cuda::device_count() > 0) return true;
  std::cout << "skipped: this machine has no GPU" << std::endl;
  std::_Exit(SIMSYNC_SKIPPED);
}

[[maybe_unused]] const bool kFoundGpu = found_gpu();

}  // namespace
