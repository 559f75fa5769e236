// Which layouts of its inputs an operator can compute on without communication, and what its outputs then are.
#pragma once
#include <string>
#include <vector>

#include "strategies/sbp/layout.hpp"

namespace simsync {

/// Operators, with their inputs -> outputs. Tensors of images are [batch, channels, ...], weights [out, in, ...].
enum class TensorOp : std::uint8_t {
  Matmul,              ///< a[..., m, k], b[..., k, n] -> [..., m, n]; with equal leading (batch) axes, or none
  Conv,                ///< x, weight -> y; or x, weight, bias[out] -> y
  ConvDataGrad,        ///< dy, weight -> dx
  ConvFilterGrad,      ///< dy, x -> gradient of the weight
  Gather,              ///< indices, table -> the table with `axis` replaced by the axes of the indices
  Embedding,           ///< indices, table[rows, width] -> [indices..., width]; the table stays whole
  EmbeddingGrad,       ///< dy[indices..., width], indices -> gradient of the table
  LayerNorm,           ///< x, gamma, beta -> y; axes from `axis` on are normalized
  LayerNormParamGrad,  ///< dy, x -> gradients of gamma and beta
  Softmax,             ///< x -> y, along `axis`
  Linear,              ///< inputs of one shape -> the same shape, elementwise and linear in all inputs together: a sum
  NonLinear,           ///< inputs of one shape -> the same shape, elementwise
};

/// An operator and the logical shapes of its tensors.
struct TensorOpCall {
  TensorOp op = TensorOp::Matmul;
  std::vector<TensorShape> inputs;
  std::vector<TensorShape> outputs;
  int axis = 0;  ///< of Gather, LayerNorm, Softmax: see there
};
/// a[m, k] b[k, n]
TensorOpCall matmul_call(std::int64_t m, std::int64_t k, std::int64_t n);

struct SignatureRules {
  /// Splits of a convolution's channels. They are correct, but OneFlow has none.
  bool channel_splits = false;
};

/// Along one mesh axis: a layout for each input, and those of the outputs.
struct OpSignature {
  std::vector<Sbp> inputs;
  std::vector<Sbp> outputs;
  bool beyond_oneflow = false;  ///< OneFlow does not have it
};
/// Along each axis of a mesh.
struct OpTupleSignature {
  std::vector<SbpTuple> inputs;
  std::vector<SbpTuple> outputs;
  bool beyond_oneflow = false;
};

inline constexpr std::size_t kMostTupleSignatures = 1'000'000;

/// All signatures along one mesh axis; the last is that of full copies everywhere, which every operator has. They are
/// those of the functions `GetSbp` in OneFlow's source (oneflow/user/ops), whatever the lengths of axes.
/// @throws PlanError when the tensors are not those of the operator.
std::vector<OpSignature> signatures(const TensorOpCall& call, const SignatureRules& rules = {});

/// All signatures over a mesh: one of the above for each mesh axis, independently of the others. Left out are those
/// under which a tensor does not fit (`misfit`).
/// @throws PlanError as above, and when there are more than kMostTupleSignatures combinations.
std::vector<OpTupleSignature> signatures(const TensorOpCall& call, const DeviceMesh& mesh,
                                         const SignatureRules& rules = {});

/// The outputs for inputs laid out so.
/// @throws PlanError when no signature has these inputs along some mesh axis, or a tensor does not fit.
std::vector<SbpTuple> derive_outputs(const TensorOpCall& call, const DeviceMesh& mesh,
                                     const std::vector<SbpTuple>& inputs, const SignatureRules& rules = {});

}  // namespace simsync
