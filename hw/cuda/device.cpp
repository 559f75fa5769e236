#include "hw/cuda/device.hpp"

#include <fmt/format.h>

#include <charconv>

#include "base/error.hpp"
#include "hw/cuda/check.hpp"

namespace simsync::cuda {

int device_count() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorNoDevice || status == cudaErrorInsufficientDriver || status == cudaErrorStubLibrary) return 0;
  SIMSYNC_CUDA(status);
  return count;
}

DeviceInfo describe_device(int index) {
  const int count = device_count();
  if (count == 0) throw CapabilityError("this machine has no GPU that the CUDA runtime can use (or no driver for it)");
  if (index < 0 || index >= count)
    throw CapabilityError(fmt::format("this machine has no GPU cuda:{}: it has cuda:0 to cuda:{}", index, count - 1));
  cudaDeviceProp properties{};
  SIMSYNC_CUDA(cudaGetDeviceProperties(&properties, index));
  return {.index = index,
          .name = properties.name,
          .memory = {static_cast<std::int64_t>(properties.totalGlobalMem)},
          .multiprocessors = properties.multiProcessorCount,
          .capability = fmt::format("{}.{}", properties.major, properties.minor)};
}

int parse_device(const std::string& text) {
  if (text == "cuda") return 0;
  const std::string prefix = "cuda:";
  int index = -1;
  if (text.starts_with(prefix)) {
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + prefix.size(), end, index);
    if (error == std::errc{} && rest == end && index >= 0) return index;
  }
  throw InputError(fmt::format("expected a GPU such as cuda:0, got '{}'", text));
}

std::string runtime_version() {
  int version = 0;
  SIMSYNC_CUDA(cudaRuntimeGetVersion(&version));
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace simsync::cuda
