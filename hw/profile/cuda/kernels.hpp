// The kernels of the GPU backend.
#pragma once
#include "hw/profile/backend.hpp"
#include "hw/profile/buffer_pool.hpp"
#include "hw/profile/cuda/libraries.hpp"

namespace simsync::cuda {

/// A cuDNN convolution with the algorithm that cuDNN's heuristics put first.
std::unique_ptr<Kernel> make_convolution(const Convolution& geometry, std::int64_t batch, ConvolutionPass pass,
                                         Context& context, BufferPool& pool);
/// A cuBLASLt product with the algorithm that its heuristics put first.
std::unique_ptr<Kernel> make_gemm(const Gemm& gemm, Context& context, BufferPool& pool);

}  // namespace simsync::cuda
