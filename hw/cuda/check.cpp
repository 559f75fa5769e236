#include "hw/cuda/check.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace simsync::cuda {

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  const std::string text =
      fmt::format("{} failed: {} ({})", call, cudaGetErrorString(status), cudaGetErrorName(status));
  switch (status) {
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorStubLibrary:
    case cudaErrorMemoryAllocation:
    case cudaErrorNoKernelImageForDevice:
      throw CapabilityError(text);
    default:
      throw DeviceError(text);
  }
}

void check(ncclResult_t status, const char* call) {
  if (status == ncclSuccess || status == ncclInProgress) return;
  throw DeviceError(fmt::format("{} failed: {} ({})", call, ncclGetErrorString(status), ncclGetLastError(nullptr)));
}

}  // namespace simsync::cuda
