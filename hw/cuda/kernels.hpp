// The kernels of kernels.cu, launched from ordinary C++.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

namespace simsync::cuda {

/// One thread block that does nothing for `nanoseconds` of the device's global timer, so that it leaves every other
/// multiprocessor to whatever runs beside it.
void launch_spin(std::int64_t nanoseconds, cudaStream_t stream);

/// Reads `count` 16-byte words of `from` and writes them to `to`, on all multiprocessors.
void launch_stream(const void* from, void* to, std::int64_t count, cudaStream_t stream);

}  // namespace simsync::cuda
