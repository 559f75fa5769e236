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

/// to[positions[i]] = values[i] for i below `count`. The lists may lie in page-locked host memory.
void launch_scatter(const float* values, const std::int64_t* positions, int count, float* to, cudaStream_t stream);
/// values[i] = from[positions[i]].
void launch_gather(const float* from, const std::int64_t* positions, int count, float* values, cudaStream_t stream);

}  // namespace simsync::cuda
