#include "strategies/sbp/op_signatures.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.hpp"
#include "strategies/sbp/op_tensors.hpp"

namespace simsync {
namespace {

constexpr Sbp kB = Sbp::broadcast();
constexpr Sbp kP = Sbp::partial();
constexpr Sbp s(int axis) {
  return Sbp::split(axis);
}

using Signatures = std::vector<OpSignature>;

int axes_of(const TensorShape& shape) {
  return static_cast<int>(shape.size());
}

/// Axes `begin` up to `end` of all tensors alike.
void add_same_splits(Signatures& out, const TensorOpCall& call, int begin, int end) {
  for (int axis = begin; axis < end; ++axis)
    out.push_back(
        {std::vector<Sbp>(call.inputs.size(), s(axis)), std::vector<Sbp>(call.outputs.size(), s(axis)), false});
}

/// Of a product over the last two axes: along m, n and k, and of one factor that is a sum. Axes before them alike.
Signatures matmul_signatures(const TensorOpCall& call) {
  const int m = axes_of(call.inputs.front()) - 2;
  const int last = m + 1;
  Signatures out{{{s(m), kB}, {s(m)}, false},
                 {{kB, s(last)}, {s(last)}, false},
                 {{s(last), s(m)}, {kP}, false},
                 {{kP, kB}, {kP}, false},
                 {{kB, kP}, {kP}, false}};
  add_same_splits(out, call, 0, m);
  return out;
}

/// The bias of an output that is a sum must be one, too, or each addend would bring it.
Signatures conv_signatures(const TensorOpCall& call, const SignatureRules& rules) {
  const bool has_bias = call.inputs.size() == 3;
  const auto with_bias = [&](Sbp x, Sbp weight, Sbp bias) {
    return has_bias ? std::vector<Sbp>{x, weight, bias} : std::vector<Sbp>{x, weight};
  };
  Signatures out{{with_bias(s(0), kB, kB), {s(0)}, false}};
  if (rules.channel_splits) {
    out.push_back({with_bias(kB, s(0), s(0)), {s(1)}, true});
    out.push_back({with_bias(s(1), s(1), kP), {kP}, true});
  }
  return out;
}

Signatures conv_data_grad_signatures(const SignatureRules& rules) {
  Signatures out{{{s(0), kB}, {s(0)}, false}};
  if (rules.channel_splits) {
    out.push_back({{s(1), s(0)}, {kP}, true});
    out.push_back({{kB, s(1)}, {s(1)}, true});
  }
  return out;
}

Signatures conv_filter_grad_signatures(const SignatureRules& rules) {
  Signatures out{{{s(0), s(0)}, {kP}, false}};
  if (rules.channel_splits) {
    out.push_back({{s(1), kB}, {s(0)}, true});
    out.push_back({{kB, s(1)}, {s(1)}, true});
  }
  return out;
}

/// The output has the table's axes before `axis`, the indices' axes, the table's axes behind `axis`. A rank that has
/// some rows of the table puts zeros for the others.
Signatures gather_signatures(const TensorOpCall& call) {
  const int index_axes = axes_of(call.inputs[0]);
  Signatures out;
  for (int i = 0; i < index_axes; ++i) out.push_back({{s(i), kB}, {s(call.axis + i)}, false});
  for (int i = 0; i < axes_of(call.inputs[1]); ++i) {
    if (i == call.axis)
      out.push_back({{kB, s(i)}, {kP}, false});
    else
      out.push_back({{kB, s(i)}, {s(i < call.axis ? i : i - 1 + index_axes)}, false});
  }
  return out;
}

Signatures embedding_signatures(const TensorOpCall& call) {
  Signatures out;
  for (int i = 0; i < axes_of(call.inputs[0]); ++i) out.push_back({{s(i), kB}, {s(i)}, false});
  return out;
}

Signatures embedding_grad_signatures(const TensorOpCall& call) {
  Signatures out;
  for (int i = 0; i < axes_of(call.inputs[1]); ++i) out.push_back({{s(i), s(i)}, {kP}, false});
  return out;
}

Signatures layer_norm_signatures(const TensorOpCall& call) {
  Signatures out;
  for (int i = 0; i < call.axis; ++i) out.push_back({{s(i), kB, kB}, {s(i)}, false});
  return out;
}

Signatures layer_norm_grad_signatures(const TensorOpCall& call) {
  Signatures out;
  for (int i = 0; i < call.axis; ++i) out.push_back({{s(i), s(i)}, {kP, kP}, false});
  return out;
}

Signatures softmax_signatures(const TensorOpCall& call) {
  Signatures out;
  add_same_splits(out, call, 0, call.axis);
  add_same_splits(out, call, call.axis + 1, axes_of(call.inputs.front()));
  return out;
}

Signatures elementwise_signatures(const TensorOpCall& call) {
  Signatures out;
  add_same_splits(out, call, 0, axes_of(call.inputs.front()));
  if (call.op == TensorOp::Linear)
    out.push_back({std::vector<Sbp>(call.inputs.size(), kP), std::vector<Sbp>(call.outputs.size(), kP), false});
  return out;
}

Signatures split_signatures(const TensorOpCall& call, const SignatureRules& rules) {
  switch (call.op) {
    case TensorOp::Matmul:
      return matmul_signatures(call);
    case TensorOp::Conv:
      return conv_signatures(call, rules);
    case TensorOp::ConvDataGrad:
      return conv_data_grad_signatures(rules);
    case TensorOp::ConvFilterGrad:
      return conv_filter_grad_signatures(rules);
    case TensorOp::Gather:
      return gather_signatures(call);
    case TensorOp::Embedding:
      return embedding_signatures(call);
    case TensorOp::EmbeddingGrad:
      return embedding_grad_signatures(call);
    case TensorOp::LayerNorm:
      return layer_norm_signatures(call);
    case TensorOp::LayerNormParamGrad:
      return layer_norm_grad_signatures(call);
    case TensorOp::Softmax:
      return softmax_signatures(call);
    case TensorOp::Linear:
    case TensorOp::NonLinear:
      return elementwise_signatures(call);
  }
  assertion_failed("every operator has its signatures", __FILE__, __LINE__);
}

/// The signature over a mesh that takes `chosen[a]` along mesh axis a.
OpTupleSignature combined(const Signatures& list, const std::vector<std::size_t>& chosen) {
  OpTupleSignature out;
  out.inputs.resize(list.front().inputs.size());
  out.outputs.resize(list.front().outputs.size());
  for (const std::size_t c : chosen) {
    for (std::size_t i = 0; i < out.inputs.size(); ++i) out.inputs[i].push_back(list[c].inputs[i]);
    for (std::size_t i = 0; i < out.outputs.size(); ++i) out.outputs[i].push_back(list[c].outputs[i]);
    out.beyond_oneflow = out.beyond_oneflow || list[c].beyond_oneflow;
  }
  return out;
}

/// The next combination of numbers below `count`, the last position fastest; false after the last one.
bool advance(std::vector<std::size_t>& chosen, std::size_t count) {
  for (std::size_t a = chosen.size(); a-- > 0;) {
    if (++chosen[a] < count) return true;
    chosen[a] = 0;
  }
  return false;
}

bool all_fit(const TensorOpCall& call, const OpTupleSignature& signature, const DeviceMesh& mesh) {
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    if (misfit(call.inputs[i], signature.inputs[i], mesh)) return false;
  for (std::size_t i = 0; i < call.outputs.size(); ++i)
    if (misfit(call.outputs[i], signature.outputs[i], mesh)) return false;
  return true;
}

std::string no_signature(const std::vector<Sbp>& inputs, const std::string& axis, const Signatures& list) {
  const auto text = [](const std::vector<Sbp>& entries) {
    std::vector<std::string> texts;
    for (const Sbp entry : entries) texts.push_back(text_of(entry));
    return fmt::format("{}", fmt::join(texts, ","));
  };
  std::vector<std::string> known;
  for (const OpSignature& signature : list) known.push_back(text(signature.inputs));
  return fmt::format("no signature has inputs {} along mesh axis '{}': expected one of [{}]", text(inputs), axis,
                     fmt::join(known, "; "));
}

}  // namespace

TensorOpCall matmul_call(std::int64_t m, std::int64_t k, std::int64_t n) {
  return {.op = TensorOp::Matmul, .inputs = {{m, k}, {k, n}}, .outputs = {{m, n}}};
}

std::vector<OpSignature> signatures(const TensorOpCall& call, const SignatureRules& rules) {
  expect_tensors_of(call);
  Signatures out = split_signatures(call, rules);
  out.push_back({std::vector<Sbp>(call.inputs.size(), kB), std::vector<Sbp>(call.outputs.size(), kB), false});
  return out;
}

std::vector<OpTupleSignature> signatures(const TensorOpCall& call, const DeviceMesh& mesh,
                                         const SignatureRules& rules) {
  const Signatures list = signatures(call, rules);
  std::size_t combinations = 1;
  for (int a = 0; a < mesh.axis_count(); ++a) {
    combinations *= list.size();
    if (combinations > kMostTupleSignatures)
      throw PlanError(
          fmt::format("an operator has {} signatures along each of {} mesh axes: expected at most {} in all",
                      list.size(), mesh.axis_count(), kMostTupleSignatures));
  }
  std::vector<OpTupleSignature> out;
  std::vector<std::size_t> chosen(static_cast<std::size_t>(mesh.axis_count()), 0);
  do {
    OpTupleSignature signature = combined(list, chosen);
    if (all_fit(call, signature, mesh)) out.push_back(std::move(signature));
  } while (advance(chosen, list.size()));
  return out;
}

std::vector<SbpTuple> derive_outputs(const TensorOpCall& call, const DeviceMesh& mesh,
                                     const std::vector<SbpTuple>& inputs, const SignatureRules& rules) {
  const Signatures list = signatures(call, rules);
  if (inputs.size() != call.inputs.size())
    throw PlanError(fmt::format("{} layouts for the {} inputs of an operator", inputs.size(), call.inputs.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i) expect_fit(call.inputs[i], inputs[i], mesh);
  std::vector<std::size_t> chosen;
  for (int a = 0; a < mesh.axis_count(); ++a) {
    std::vector<Sbp> along;
    for (const SbpTuple& input : inputs) along.push_back(input[static_cast<std::size_t>(a)]);
    const auto found = std::find_if(list.begin(), list.end(), [&](const OpSignature& o) { return o.inputs == along; });
    if (found == list.end()) throw PlanError(no_signature(along, mesh.axis(a).name, list));
    chosen.push_back(static_cast<std::size_t>(found - list.begin()));
  }
  std::vector<SbpTuple> outputs = combined(list, chosen).outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i) expect_fit(call.outputs[i], outputs[i], mesh);
  return outputs;
}

}  // namespace simsync
