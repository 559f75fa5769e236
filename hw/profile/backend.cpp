#include "hw/profile/backend.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace simsync {

std::unique_ptr<Backend> make_backend(const std::string& device, const std::string& precision) {
  if (device == "cpu") return make_cpu_backend(precision);
  if (device.starts_with("cuda")) return make_cuda_backend(device, precision);
  throw InputError(fmt::format("unknown device '{}'", device), "expected cpu or cuda:0, cuda:1, ...");
}

}  // namespace simsync
