#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "hw/cuda/check.hpp"
#include "hw/profile/cuda/kernels.hpp"

namespace simsync::cuda {
namespace {

constexpr int kAlgorithms = 8;

TensorDescriptor make_tensor(const Precision& p, std::array<std::int64_t, 4> sizes) {
  cudnnTensorDescriptor_t handle = nullptr;
  SIMSYNC_CUDA(cudnnCreateTensorDescriptor(&handle));
  TensorDescriptor tensor(handle);
  SIMSYNC_CUDA(cudnnSetTensor4dDescriptor(handle, p.format, p.tensor, narrow(sizes[0]), narrow(sizes[1]),
                                          narrow(sizes[2]), narrow(sizes[3])));
  return tensor;
}

FilterDescriptor make_filter(const Precision& p, const Convolution& c) {
  cudnnFilterDescriptor_t handle = nullptr;
  SIMSYNC_CUDA(cudnnCreateFilterDescriptor(&handle));
  FilterDescriptor filter(handle);
  SIMSYNC_CUDA(cudnnSetFilter4dDescriptor(handle, p.tensor, p.format, narrow(c.out_channels),
                                          narrow(c.in_channels / c.groups), narrow(c.height.kernel),
                                          narrow(c.width.kernel)));
  return filter;
}

ConvolutionDescriptor make_window(const Precision& p, const Convolution& c) {
  cudnnConvolutionDescriptor_t handle = nullptr;
  SIMSYNC_CUDA(cudnnCreateConvolutionDescriptor(&handle));
  ConvolutionDescriptor window(handle);
  SIMSYNC_CUDA(cudnnSetConvolution2dDescriptor(handle, narrow(c.height.padding), narrow(c.width.padding),
                                               narrow(c.height.stride), narrow(c.width.stride), 1, 1,
                                               CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  SIMSYNC_CUDA(cudnnSetConvolutionGroupCount(handle, narrow(c.groups)));
  SIMSYNC_CUDA(cudnnSetConvolutionMathType(handle, p.convolution_math));
  return window;
}

/// Descriptors and operands of a convolution, whichever pass.
struct Parts {
  TensorDescriptor x;
  FilterDescriptor w;
  TensorDescriptor y;
  ConvolutionDescriptor window;
  void* x_data = nullptr;
  void* w_data = nullptr;
  void* y_data = nullptr;
};

Parts make_parts(const Convolution& c, std::int64_t batch, const Precision& p, BufferPool& pool) {
  Parts parts{make_tensor(p, {batch, c.in_channels, c.height.size, c.width.size}), make_filter(p, c),
              make_tensor(p, {batch, c.out_channels, c.height.positions, c.width.positions}), make_window(p, c)};
  const auto bytes = [&](std::int64_t elements) { return static_cast<std::size_t>(elements * p.bytes); };
  const auto buffers = pool.take({bytes(batch * c.in_channels * c.height.size * c.width.size),
                                  bytes(c.out_channels * (c.in_channels / c.groups) * c.height.kernel * c.width.kernel),
                                  bytes(batch * c.out_channels * c.height.positions * c.width.positions)});
  parts.x_data = buffers[0];
  parts.w_data = buffers[1];
  parts.y_data = buffers[2];
  return parts;
}

/// The first algorithm that fits into the workspace; sets the math type that belongs to it.
template <class Candidate>
auto choose(const std::array<Candidate, kAlgorithms>& candidates, int count, const Parts& parts, Workspace& workspace) {
  for (int i = 0; i < count; ++i) {
    const Candidate& candidate = candidates[static_cast<std::size_t>(i)];
    if (candidate.status != CUDNN_STATUS_SUCCESS || candidate.memory > Workspace::kLargest) continue;
    SIMSYNC_CUDA(cudnnSetConvolutionMathType(parts.window.get(), candidate.mathType));
    workspace.reserve(candidate.memory);
    return candidate.algo;
  }
  throw CapabilityError("cuDNN has no algorithm for this convolution at this precision");
}

class ForwardKernel final : public Kernel {
public:
  ForwardKernel(Parts parts, Context& context) : p_(std::move(parts)), context_(context) {
    std::array<cudnnConvolutionFwdAlgoPerf_t, kAlgorithms> found{};
    int count = 0;
    SIMSYNC_CUDA(cudnnGetConvolutionForwardAlgorithm_v7(context_.cudnn.get(), p_.x.get(), p_.w.get(), p_.window.get(),
                                                        p_.y.get(), kAlgorithms, &count, found.data()));
    algorithm_ = choose(found, count, p_, context_.workspace);
  }
  void launch() override {
    const float one = 1.0F;
    const float zero = 0.0F;
    SIMSYNC_CUDA(cudnnConvolutionForward(context_.cudnn.get(), &one, p_.x.get(), p_.x_data, p_.w.get(), p_.w_data,
                                         p_.window.get(), algorithm_, context_.workspace.data(),
                                         context_.workspace.size(), &zero, p_.y.get(), p_.y_data));
  }

private:
  Parts p_;
  Context& context_;
  cudnnConvolutionFwdAlgo_t algorithm_{};
};

class WeightGradientKernel final : public Kernel {
public:
  WeightGradientKernel(Parts parts, Context& context) : p_(std::move(parts)), context_(context) {
    std::array<cudnnConvolutionBwdFilterAlgoPerf_t, kAlgorithms> found{};
    int count = 0;
    SIMSYNC_CUDA(cudnnGetConvolutionBackwardFilterAlgorithm_v7(
        context_.cudnn.get(), p_.x.get(), p_.y.get(), p_.window.get(), p_.w.get(), kAlgorithms, &count, found.data()));
    algorithm_ = choose(found, count, p_, context_.workspace);
  }
  void launch() override {
    const float one = 1.0F;
    const float zero = 0.0F;
    SIMSYNC_CUDA(cudnnConvolutionBackwardFilter(context_.cudnn.get(), &one, p_.x.get(), p_.x_data, p_.y.get(),
                                                p_.y_data, p_.window.get(), algorithm_, context_.workspace.data(),
                                                context_.workspace.size(), &zero, p_.w.get(), p_.w_data));
  }

private:
  Parts p_;
  Context& context_;
  cudnnConvolutionBwdFilterAlgo_t algorithm_{};
};

class DataGradientKernel final : public Kernel {
public:
  DataGradientKernel(Parts parts, Context& context) : p_(std::move(parts)), context_(context) {
    std::array<cudnnConvolutionBwdDataAlgoPerf_t, kAlgorithms> found{};
    int count = 0;
    SIMSYNC_CUDA(cudnnGetConvolutionBackwardDataAlgorithm_v7(
        context_.cudnn.get(), p_.w.get(), p_.y.get(), p_.window.get(), p_.x.get(), kAlgorithms, &count, found.data()));
    algorithm_ = choose(found, count, p_, context_.workspace);
  }
  void launch() override {
    const float one = 1.0F;
    const float zero = 0.0F;
    SIMSYNC_CUDA(cudnnConvolutionBackwardData(context_.cudnn.get(), &one, p_.w.get(), p_.w_data, p_.y.get(), p_.y_data,
                                              p_.window.get(), algorithm_, context_.workspace.data(),
                                              context_.workspace.size(), &zero, p_.x.get(), p_.x_data));
  }

private:
  Parts p_;
  Context& context_;
  cudnnConvolutionBwdDataAlgo_t algorithm_{};
};

}  // namespace

std::unique_ptr<Kernel> make_convolution(const Convolution& geometry, std::int64_t batch, ConvolutionPass pass,
                                         Context& context, BufferPool& pool) {
  Parts parts = make_parts(geometry, batch, context.precision, pool);
  switch (pass) {
    case ConvolutionPass::Forward:
      return std::make_unique<ForwardKernel>(std::move(parts), context);
    case ConvolutionPass::WeightGradient:
      return std::make_unique<WeightGradientKernel>(std::move(parts), context);
    case ConvolutionPass::DataGradient:
      return std::make_unique<DataGradientKernel>(std::move(parts), context);
  }
  throw std::logic_error("unknown pass of a convolution");
}

}  // namespace simsync::cuda
