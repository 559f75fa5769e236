// Failed calls of the CUDA runtime and of NCCL as exceptions that name the call.
#pragma once
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <stdexcept>

namespace simsync::cuda {

/// A call that a GPU or a communicator refused.
class DeviceError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// @throws CapabilityError when the machine has no driver, no GPU or not enough device memory; DeviceError otherwise.
void check(cudaError_t status, const char* call);
/// @throws DeviceError with NCCL's own account of what went wrong.
void check(ncclResult_t status, const char* call);

}  // namespace simsync::cuda

/// Runs a call of the CUDA runtime or of NCCL: `SIMSYNC_CUDA(cudaStreamSynchronize(stream));`
#define SIMSYNC_CUDA(call) ::simsync::cuda::check((call), #call)
