// Which GPUs this machine has.
#pragma once
#include <string>

#include "base/units.hpp"

namespace simsync::cuda {

struct DeviceInfo {
  int index = 0;
  std::string name;  ///< as the driver says: `NVIDIA H200`
  Bytes memory;
  int multiprocessors = 0;
  std::string capability;  ///< compute capability, `9.0`
};

/// GPUs that the driver shows; 0 without a driver.
int device_count();
/// @throws CapabilityError when the machine has no driver or no such GPU.
DeviceInfo describe_device(int index);
/// The index in `cuda:1`; `cuda` alone is the first GPU. @throws InputError for any other text.
int parse_device(const std::string& text);
/// Version of the CUDA runtime that this build uses, `13.0`.
std::string runtime_version();

}  // namespace simsync::cuda
