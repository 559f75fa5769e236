#include "strategies/layer_boxing.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.hpp"

namespace simsync {
namespace {

/// How tensor-parallel ranks bring a tensor from one layout into another.
BoxingOp conversion(Sbp from, Sbp to) {
  constexpr int kSeveral = 2;  // of one rank nothing is converted; of more the operation is the same
  const auto op = boxing_op(from, to, kSeveral);
  SIMSYNC_ASSERT(op && *op != BoxingOp::ZeroFill);  // no layer asks for a partial sum
  return *op;
}

/// How and where ranks have an activation or a gradient of one.
struct Held {
  Sbp layout;
  bool at_experts = false;
};

/// What becomes of one tensor for all that read it.
class TensorConversions {
public:
  /// `bytes` of the tensor as all tensor-parallel ranks have it. Keeps a reference.
  TensorConversions(const ModelParallel& parallel, double bytes) : parallel_(parallel), bytes_(bytes) {}

  /// What one reader asks for, if none has before.
  void add(const Held& from, const Held& to, std::vector<TensorBoxing>& out) {
    if (!done_.insert({to.at_experts, from.layout, to.layout}).second) return;
    if (to.at_experts && !from.at_experts) cross(from.layout, out);
    const BoxingOp op = conversion(from.layout, to.layout);
    if (op != BoxingOp::None && op != BoxingOp::Slice) out.push_back({.op = op, .bytes = bytes_});
    if (from.at_experts && !to.at_experts) cross(to.layout, out);
  }

private:
  /// Between the expert-parallel ranks, as a tensor-parallel rank has it; once for all readers.
  void cross(Sbp layout, std::vector<TensorBoxing>& out) {
    if (parallel_.experts == 1 || std::exchange(crossed_, true)) return;
    const double own = layout.is_split() ? bytes_ / parallel_.tensor : bytes_;
    out.push_back({.op = BoxingOp::AllToAll, .bytes = parallel_.experts * own, .group = BoxingGroup::Experts});
  }

  const ModelParallel& parallel_;
  double bytes_;
  bool crossed_ = false;
  std::set<std::tuple<bool, Sbp, Sbp>> done_;
};

/// Around attention, of the keys and values as a tensor-parallel rank has them.
void exchange_context(const Model& model, const std::vector<LayerSplit>& splits, const ModelParallel& parallel,
                      LayerBoxings& out) {
  for (LayerId id = 0; id < model.layer_count(); ++id) {
    const double bytes = part_of(model.layer(id), splits[id], parallel).operation.key_value_bytes;
    const std::vector<LayerId> inputs = inputs_of(model, id);
    if (bytes <= 0.0 || inputs.empty()) continue;
    const TensorBoxing gather{.op = BoxingOp::AllGather, .bytes = bytes, .group = BoxingGroup::Context};
    out.before_forward[id].push_back(gather);
    out.before_backward[id].push_back(gather);
    // Of the layers that it reads the last one's backward pass comes next.
    std::vector<TensorBoxing>& after = out.before_backward[*std::max_element(inputs.begin(), inputs.end())];
    after.insert(after.begin(), {.op = BoxingOp::ReduceScatter, .bytes = bytes, .group = BoxingGroup::Context});
  }
}

}  // namespace

int ranks_of(BoxingGroup group, const ModelParallel& parallel) {
  switch (group) {
    case BoxingGroup::Tensor:
      return parallel.tensor;
    case BoxingGroup::Experts:
      return parallel.experts;
    case BoxingGroup::Context:
      return parallel.context;
  }
  assertion_failed("every group has its ranks", __FILE__, __LINE__);
}

bool runs_beside(const ModelParallel& parallel, const TensorBoxing& step, LayerKind next,
                 std::optional<LayerKind> previous) {
  const auto beside = [&](LayerKind kind) {
    if (step.op == BoxingOp::AllGather) return next == kind;
    return step.op == BoxingOp::ReduceScatter && previous == kind;
  };
  switch (step.group) {
    case BoxingGroup::Tensor:
      return parallel.tensor_overlap && beside(LayerKind::Dense);
    case BoxingGroup::Context:
      return parallel.context_overlap && beside(LayerKind::Attention);
    case BoxingGroup::Experts:
      break;
  }
  return false;
}

LayerBoxings layer_boxings(const Model& model, const std::vector<LayerSplit>& splits, const ModelParallel& parallel) {
  const std::size_t layers = model.layer_count();
  LayerBoxings out{.before_forward = std::vector<std::vector<TensorBoxing>>(layers),
                   .before_backward = std::vector<std::vector<TensorBoxing>>(layers)};
  const double tokens = 1.0 / parallel.context;
  for (LayerId id = 0; id < layers; ++id) {
    const Layer& layer = model.layer(id);
    const ActivationLayouts here = layouts_of(splits[id]);
    const double bytes = tokens * layer.output_bytes;
    TensorConversions forward(parallel, bytes);
    TensorConversions backward(parallel, bytes);
    LayerId last_columns = layers;
    auto [next, end] = boost::adjacent_vertices(id, model.graph());
    std::set<LayerId> readers(next, end);
    for (const LayerId reader : readers) {
      const ActivationLayouts there = layouts_of(splits[reader]);
      const bool there_at_experts = model.layer(reader).at_experts;
      forward.add({here.output, layer.at_experts}, {there.input, there_at_experts}, out.before_forward[reader]);
      backward.add({there.input_grad, there_at_experts}, {here.output_grad, layer.at_experts}, out.before_backward[id]);
      if (splits[reader] == LayerSplit::Columns) last_columns = reader;
    }
    if (here.output == kByTokens && last_columns < layers)
      out.before_backward[last_columns].push_back({.op = BoxingOp::AllGather, .bytes = bytes});
  }
  constexpr double kNumbers = 3.0;
  constexpr double kWidth = 4.0;
  for (LayerId id = 0; id < layers; ++id) {
    if (model.layer(id).kind != LayerKind::Loss || splits[id] != LayerSplit::Features) continue;
    for (const LayerId input : inputs_of(model, id))
      out.before_forward[id].push_back(
          {.op = BoxingOp::AllReduce, .bytes = tokens * kNumbers * kWidth * model.layer(input).dense_rows});
  }
  if (parallel.context > 1) exchange_context(model, splits, parallel, out);
  return out;
}

}  // namespace simsync
