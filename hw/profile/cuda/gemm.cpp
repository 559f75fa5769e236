#include "base/error.hpp"
#include "hw/cuda/check.hpp"
#include "hw/profile/cuda/kernels.hpp"

namespace simsync::cuda {
namespace {

constexpr std::size_t kGemmWorkspace = std::size_t{32} << 20;

/// A matrix of `rows` x `columns`, column by column as cuBLAS has it, `count` of them in a row.
LtLayout make_layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns, std::int64_t count) {
  cublasLtMatrixLayout_t handle = nullptr;
  SIMSYNC_CUDA(cublasLtMatrixLayoutCreate(&handle, type, static_cast<std::uint64_t>(rows),
                                          static_cast<std::uint64_t>(columns), rows));
  LtLayout layout(handle);
  const auto batch = static_cast<std::int32_t>(narrow(count));
  const std::int64_t stride = rows * columns;
  SIMSYNC_CUDA(cublasLtMatrixLayoutSetAttribute(handle, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof(batch)));
  SIMSYNC_CUDA(
      cublasLtMatrixLayoutSetAttribute(handle, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof(stride)));
  return layout;
}

LtMatmul make_matmul(const Precision& precision, bool transpose_first, bool transpose_second) {
  cublasLtMatmulDesc_t handle = nullptr;
  SIMSYNC_CUDA(cublasLtMatmulDescCreate(&handle, precision.compute, CUDA_R_32F));
  LtMatmul matmul(handle);
  const cublasOperation_t first = transpose_first ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t second = transpose_second ? CUBLAS_OP_T : CUBLAS_OP_N;
  SIMSYNC_CUDA(cublasLtMatmulDescSetAttribute(handle, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof(first)));
  SIMSYNC_CUDA(cublasLtMatmulDescSetAttribute(handle, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof(second)));
  return matmul;
}

/// Row-major C = A B is column-major C^T = B^T A^T: a row-major [k, n] in memory is a column-major [n, k], so cuBLAS
/// gets B first and A second, each with the transposition that it had.
class GemmKernel final : public Kernel {
public:
  GemmKernel(const Gemm& g, Context& context, BufferPool& pool)
      : context_(context), matmul_(make_matmul(context.precision, g.transpose_b, g.transpose_a)) {
    const cudaDataType_t type = context.precision.matrix;
    b_ = make_layout(type, g.transpose_b ? g.k : g.n, g.transpose_b ? g.n : g.k, g.count);
    a_ = make_layout(type, g.transpose_a ? g.m : g.k, g.transpose_a ? g.k : g.m, g.count);
    c_ = make_layout(type, g.n, g.m, g.count);
    const auto bytes = [&](std::int64_t elements) {
      return static_cast<std::size_t>(g.count * elements * context.precision.bytes);
    };
    const auto buffers = pool.take({bytes(g.m * g.k), bytes(g.k * g.n), bytes(g.m * g.n)});
    a_data_ = buffers[0];
    b_data_ = buffers[1];
    c_data_ = buffers[2];
    choose_algorithm();
  }

  void launch() override {
    const float one = 1.0F;
    const float zero = 0.0F;
    SIMSYNC_CUDA(cublasLtMatmul(context_.lt.get(), matmul_.get(), &one, b_data_, b_.get(), a_data_, a_.get(), &zero,
                                c_data_, c_.get(), c_data_, c_.get(), &algorithm_, context_.workspace.data(),
                                context_.workspace.size(), context_.stream.get()));
  }

private:
  void choose_algorithm() {
    context_.workspace.reserve(kGemmWorkspace);
    cublasLtMatmulPreference_t handle = nullptr;
    SIMSYNC_CUDA(cublasLtMatmulPreferenceCreate(&handle));
    const LtPreference preference(handle);
    SIMSYNC_CUDA(cublasLtMatmulPreferenceSetAttribute(handle, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kGemmWorkspace,
                                                      sizeof(kGemmWorkspace)));
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    SIMSYNC_CUDA(cublasLtMatmulAlgoGetHeuristic(context_.lt.get(), matmul_.get(), b_.get(), a_.get(), c_.get(),
                                                c_.get(), handle, 1, &found, &count));
    if (count == 0) throw CapabilityError("cuBLASLt has no algorithm for this product at this precision");
    algorithm_ = found.algo;
  }

  Context& context_;
  LtMatmul matmul_;
  LtLayout a_;
  LtLayout b_;
  LtLayout c_;
  void* a_data_ = nullptr;
  void* b_data_ = nullptr;
  void* c_data_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
};

}  // namespace

std::unique_ptr<Kernel> make_gemm(const Gemm& gemm, Context& context, BufferPool& pool) {
  return std::make_unique<GemmKernel>(gemm, context, pool);
}

}  // namespace simsync::cuda
