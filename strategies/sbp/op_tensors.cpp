#include "strategies/sbp/op_tensors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.hpp"

namespace simsync {
namespace {

int axes_of(const TensorShape& shape) {
  return static_cast<int>(shape.size());
}

/// What an operator's tensors must be, `holds` when they are.
struct Expectation {
  const char* text;
  bool holds;
};

bool is_matmul(const TensorOpCall& call) {
  if (call.inputs.size() != 2 || call.outputs.size() != 1) return false;
  const TensorShape& a = call.inputs[0];
  const TensorShape& b = call.inputs[1];
  const TensorShape& y = call.outputs[0];
  if (a.size() < 2 || b.size() != a.size() || y.size() != a.size()) return false;
  const std::size_t m = a.size() - 2;
  for (std::size_t i = 0; i < m; ++i)
    if (a[i] != b[i] || a[i] != y[i]) return false;
  return a[m + 1] == b[m] && y[m] == a[m] && y[m + 1] == b[m + 1];
}

/// Two inputs and one output of at least two axes each: batch and channels, or channels and channels.
bool is_conv(const TensorOpCall& call, bool may_have_bias) {
  const auto has_channels = [](const TensorShape& shape) { return shape.size() >= 2; };
  if (call.outputs.size() != 1 || !has_channels(call.outputs[0])) return false;
  const bool has_bias = may_have_bias && call.inputs.size() == 3 && call.inputs[2].size() == 1;
  return (call.inputs.size() == 2 || has_bias) && has_channels(call.inputs[0]) && has_channels(call.inputs[1]);
}

bool is_gather(const TensorOpCall& call, int axis) {
  if (call.inputs.size() != 2 || call.outputs.size() != 1) return false;
  const TensorShape& indices = call.inputs[0];
  TensorShape wanted = call.inputs[1];
  if (axis < 0 || axis >= axes_of(wanted)) return false;
  wanted.erase(wanted.begin() + axis);
  wanted.insert(wanted.begin() + axis, indices.begin(), indices.end());
  return call.outputs[0] == wanted;
}

bool is_embedding_grad(const TensorOpCall& call) {
  return call.inputs.size() == 2 && call.outputs.size() == 1 && call.outputs[0].size() == 2 &&
         is_gather({.inputs = {call.inputs[1], call.outputs[0]}, .outputs = {call.inputs[0]}}, 0);
}

/// Every input and output has the first input's shape.
bool is_elementwise(const TensorOpCall& call) {
  const auto same = [&](const TensorShape& shape) { return shape == call.inputs.front(); };
  return !call.inputs.empty() && call.outputs.size() == 1 &&
         std::all_of(call.inputs.begin(), call.inputs.end(), same) && same(call.outputs[0]);
}

bool is_layer_norm(const TensorOpCall& call, bool is_grad) {
  const std::size_t inputs = is_grad ? 2 : 3;
  const std::size_t outputs = is_grad ? 2 : 1;
  if (call.inputs.size() != inputs || call.outputs.size() != outputs) return false;
  const TensorShape& x = call.inputs[0];
  if (call.axis < 0 || call.axis >= axes_of(x)) return false;
  const TensorShape params(x.begin() + call.axis, x.end());
  if (is_grad) return call.inputs[1] == x && call.outputs[0] == params && call.outputs[1] == params;
  return call.outputs[0] == x && call.inputs[1] == params && call.inputs[2] == params;
}

Expectation expectation(const TensorOpCall& call) {
  switch (call.op) {
    case TensorOp::Matmul:
      return {"matmul: expected a[..., m, k], b[..., k, n] -> [..., m, n]", is_matmul(call)};
    case TensorOp::Conv:
      return {"convolution: expected x, weight and, if any, bias[out] -> y", is_conv(call, true)};
    case TensorOp::ConvDataGrad:
      return {"data gradient of a convolution: expected dy, weight -> dx", is_conv(call, false)};
    case TensorOp::ConvFilterGrad:
      return {"filter gradient of a convolution: expected dy, x -> gradient of the weight", is_conv(call, false)};
    case TensorOp::Gather:
      return {"gather: expected indices, table -> the table with `axis` replaced by the axes of the indices",
              is_gather(call, call.axis)};
    case TensorOp::Embedding:
      return {"embedding: expected indices, table[rows, width] -> [indices..., width]",
              is_gather(call, 0) && call.inputs[1].size() == 2};
    case TensorOp::EmbeddingGrad:
      return {"gradient of an embedding: expected dy[indices..., width], indices -> [rows, width]",
              is_embedding_grad(call)};
    case TensorOp::LayerNorm:
      return {"layer norm: expected x, gamma, beta -> y, with gamma and beta of x's axes from `axis` on",
              is_layer_norm(call, false)};
    case TensorOp::LayerNormParamGrad:
      return {"parameter gradients of a layer norm: expected dy, x -> two tensors of x's axes from `axis` on",
              is_layer_norm(call, true)};
    case TensorOp::Softmax:
      return {"softmax: expected x -> y of one shape, with an axis `axis`",
              is_elementwise(call) && call.inputs.size() == 1 && call.axis >= 0 &&
                  call.axis < axes_of(call.inputs.front())};
    case TensorOp::Linear:
    case TensorOp::NonLinear:
      return {"elementwise operator: expected inputs of one shape -> one output of that shape", is_elementwise(call)};
  }
  assertion_failed("every operator has its tensors", __FILE__, __LINE__);
}

std::string texts_of(const std::vector<TensorShape>& shapes) {
  std::vector<std::string> texts;
  for (const TensorShape& shape : shapes) texts.push_back(shape_text(shape));
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

void expect_tensors_of(const TensorOpCall& call) {
  for (const auto* shapes : {&call.inputs, &call.outputs})
    for (const TensorShape& shape : *shapes)
      if (std::any_of(shape.begin(), shape.end(), [](std::int64_t length) { return length < 1; }))
        throw PlanError(fmt::format("a tensor of shape {}: expected axes of length 1 or more", shape_text(shape)));
  const Expectation expected = expectation(call);
  if (!expected.holds)
    throw PlanError(fmt::format("{}; got {} -> {}", expected.text, texts_of(call.inputs), texts_of(call.outputs)));
}

}  // namespace simsync
