#include "hw/cuda/check.hpp"
#include "hw/cuda/kernels.hpp"

namespace simsync::cuda {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMostBlocks = 8192;

__device__ std::int64_t global_nanoseconds() {
  std::int64_t now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void spin(std::int64_t nanoseconds) {
  const std::int64_t start = global_nanoseconds();
  while (global_nanoseconds() - start < nanoseconds) {
  }
}

__global__ void stream_words(const uint4* from, uint4* to, std::int64_t count) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride)
    to[i] = from[i];
}

__global__ void scatter(const float* values, const std::int64_t* positions, int count, float* to) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) to[positions[i]] = values[i];
}

__global__ void gather(const float* from, const std::int64_t* positions, int count, float* values) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) values[i] = from[positions[i]];
}

unsigned blocks_for(int count) {
  return static_cast<unsigned>((count + kThreads - 1) / kThreads);
}

}  // namespace

void launch_spin(std::int64_t nanoseconds, cudaStream_t stream) {
  spin<<<1, 1, 0, stream>>>(nanoseconds);
  SIMSYNC_CUDA(cudaGetLastError());
}

void launch_stream(const void* from, void* to, std::int64_t count, cudaStream_t stream) {
  if (count == 0) return;
  const std::int64_t blocks = (count + kThreads - 1) / kThreads;
  const auto grid = static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks);
  stream_words<<<grid, kThreads, 0, stream>>>(static_cast<const uint4*>(from), static_cast<uint4*>(to), count);
  SIMSYNC_CUDA(cudaGetLastError());
}

void launch_scatter(const float* values, const std::int64_t* positions, int count, float* to, cudaStream_t stream) {
  if (count == 0) return;
  scatter<<<blocks_for(count), kThreads, 0, stream>>>(values, positions, count, to);
  SIMSYNC_CUDA(cudaGetLastError());
}

void launch_gather(const float* from, const std::int64_t* positions, int count, float* values, cudaStream_t stream) {
  if (count == 0) return;
  gather<<<blocks_for(count), kThreads, 0, stream>>>(from, positions, count, values);
  SIMSYNC_CUDA(cudaGetLastError());
}

}  // namespace simsync::cuda
