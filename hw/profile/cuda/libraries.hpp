// cuDNN and cuBLASLt handles that free themselves, and their errors as exceptions.
#pragma once
#include <cublasLt.h>
#include <cudnn.h>

#include <memory>
#include <type_traits>

#include "hw/cuda/handles.hpp"

namespace simsync::cuda {

/// @throws CapabilityError for what the library does not support, DeviceError otherwise.
void check(cudnnStatus_t status, const char* call);
void check(cublasStatus_t status, const char* call);

/// An opaque handle with its `destroy` function.
template <class Handle, auto destroy>
class Owned {
public:
  Owned() = default;
  explicit Owned(Handle handle) : handle_(handle) {}
  [[nodiscard]] Handle get() const { return handle_.get(); }

private:
  struct Destroy {
    void operator()(Handle handle) const { destroy(handle); }
  };
  std::unique_ptr<std::remove_pointer_t<Handle>, Destroy> handle_;
};

using CudnnHandle = Owned<cudnnHandle_t, cudnnDestroy>;
using TensorDescriptor = Owned<cudnnTensorDescriptor_t, cudnnDestroyTensorDescriptor>;
using FilterDescriptor = Owned<cudnnFilterDescriptor_t, cudnnDestroyFilterDescriptor>;
using ConvolutionDescriptor = Owned<cudnnConvolutionDescriptor_t, cudnnDestroyConvolutionDescriptor>;
using LtHandle = Owned<cublasLtHandle_t, cublasLtDestroy>;
using LtMatmul = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using LtLayout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using LtPreference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

/// How the libraries name a precision.
struct Precision {
  cudnnDataType_t tensor;
  cudnnMathType_t convolution_math;
  cudnnTensorFormat_t format;  ///< tensor cores want the channels last in 16 bits
  cudaDataType_t matrix;
  cublasComputeType_t compute;
  std::int64_t bytes;  ///< of an element
};
/// fp32, tf32, fp16 or bf16; sums are in 32 bits. @throws CapabilityError for any other text.
Precision precision_of(const std::string& name);

/// Memory that a library may use during one call; one for all calls on one stream.
class Workspace {
public:
  static constexpr std::size_t kLargest = std::size_t{1} << 30;
  /// Grows it when it is smaller; call before the first launch.
  void reserve(std::size_t size);
  [[nodiscard]] void* data() const { return buffer_.data(); }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(buffer_.size().count); }

private:
  DeviceBuffer buffer_;
};

/// What all kernels of a backend share.
struct Context {
  Stream stream;
  CudnnHandle cudnn;
  LtHandle lt;
  Workspace workspace;
  Precision precision;
};

/// @throws CapabilityError when `value` is too large for the libraries' 32-bit sizes.
int narrow(std::int64_t value);

}  // namespace simsync::cuda
