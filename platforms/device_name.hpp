// What drivers call a device, and what cluster files do.
#pragma once
#include <string>

namespace simsync {

/// Whether a driver's name (`Tesla V100-SXM2-16GB`, `NVIDIA GeForce RTX 2080 Ti`) is of the chip that a device class
/// has in its name (`V100-PCIE-32GB`, `RTX-2080Ti`): form and memory do not count.
bool names_chip(const std::string& driver_name, const std::string& device_class);

}  // namespace simsync
