#include "hw/profile/cuda/libraries.hpp"

#include <fmt/format.h>

#include <limits>

#include "base/error.hpp"
#include "hw/cuda/check.hpp"

namespace simsync::cuda {

void check(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  const std::string text = fmt::format("{} failed: {}", call, cudnnGetErrorString(status));
  if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) throw CapabilityError(text);
  throw DeviceError(text);
}

void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const std::string text = fmt::format("{} failed: {}", call, cublasLtGetStatusString(status));
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH) throw CapabilityError(text);
  throw DeviceError(text);
}

Precision precision_of(const std::string& name) {
  if (name == "fp32") return {CUDNN_DATA_FLOAT, CUDNN_FMA_MATH, CUDNN_TENSOR_NCHW, CUDA_R_32F, CUBLAS_COMPUTE_32F, 4};
  if (name == "tf32")
    return {CUDNN_DATA_FLOAT, CUDNN_DEFAULT_MATH, CUDNN_TENSOR_NCHW, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 4};
  if (name == "fp16")
    return {CUDNN_DATA_HALF, CUDNN_TENSOR_OP_MATH, CUDNN_TENSOR_NHWC, CUDA_R_16F, CUBLAS_COMPUTE_32F, 2};
  if (name == "bf16")
    return {CUDNN_DATA_BFLOAT16, CUDNN_TENSOR_OP_MATH, CUDNN_TENSOR_NHWC, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 2};
  throw CapabilityError(
      fmt::format("a GPU's layers cannot be timed at precision {}: expected fp32, tf32, fp16 or bf16", name));
}

void Workspace::reserve(std::size_t size) {
  if (size > this->size()) buffer_ = DeviceBuffer(Bytes{static_cast<std::int64_t>(size)});
}

int narrow(std::int64_t value) {
  if (value > std::numeric_limits<int>::max())
    throw CapabilityError(fmt::format("a size of {} is too large for cuDNN", value));
  return static_cast<int>(value);
}

}  // namespace simsync::cuda
