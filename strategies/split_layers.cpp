#include "strategies/split_layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "models/product_time.hpp"

namespace simsync {
namespace {

std::vector<LayerId> inputs_of(const Model& model, LayerId id) {
  const auto [begin, end] = boost::inv_adjacent_vertices(id, model.graph());
  return {begin, end};
}

[[noreturn]] void refuse(const Model& model, const Layer& layer, const char* why) {
  throw PlanError(
      fmt::format("tensor parallelism cannot split layer '{}' of model '{}': {}", layer.name, model.name(), why));
}

bool has_experts(const Layer& layer) {
  return layer.kind == LayerKind::Dense && layer.dense_rows <= 0.0;
}

LayerSplit split_of(const Model& model, LayerId id, bool reads_features, bool sequence) {
  const Layer& layer = model.layer(id);
  const LayerSplit rest = sequence ? LayerSplit::Tokens : LayerSplit::Whole;
  switch (layer.kind) {
    case LayerKind::Embedding:
      return LayerSplit::Vocabulary;
    case LayerKind::Dense:
      if (has_experts(layer)) refuse(model, layer, "experts are split by expert parallelism, which is not built yet");
      return reads_features ? LayerSplit::Rows : LayerSplit::Columns;
    case LayerKind::Attention:
      if (!reads_features) refuse(model, layer, "it reads no heads that a dense layer before it has split");
      return LayerSplit::Features;
    case LayerKind::Norm:
      return reads_features ? LayerSplit::Whole : rest;  // it needs whole rows: they are gathered
    case LayerKind::Activation:
    case LayerKind::Elementwise:
    case LayerKind::Loss:
      return reads_features ? LayerSplit::Features : layer.kind == LayerKind::Loss ? LayerSplit::Whole : rest;
    case LayerKind::Conv:
    case LayerKind::Pool:
      refuse(model, layer, "only transformers of dense layers and attention are split, no convolutions");
    case LayerKind::Recurrent:
      refuse(model, layer, "only transformers of dense layers and attention are split, no recurrences");
  }
  return rest;
}

/// Along which axis the products of a layer are cut; none: they are not.
std::optional<ProductAxis> cut_of(LayerSplit split) {
  switch (split) {
    case LayerSplit::Columns:
      return ProductAxis::Columns;
    case LayerSplit::Rows:
      return ProductAxis::Inner;
    case LayerSplit::Features:
      return ProductAxis::Heads;
    case LayerSplit::Tokens:
      return ProductAxis::Rows;
    case LayerSplit::Whole:
    case LayerSplit::Vocabulary:
      break;
  }
  return std::nullopt;
}

/// How tensor-parallel ranks bring a tensor from one layout into another.
BoxingOp conversion(Sbp from, Sbp to) {
  constexpr int kSeveral = 2;  // of one rank nothing is converted; of more the operation is the same
  const auto op = boxing_op(from, to, kSeveral);
  if (op && *op != BoxingOp::AllToAll && *op != BoxingOp::ZeroFill) return *op;
  throw PlanError("no layer here asks for one split of a tensor in place of another");
}

/// Ceiling of a / b.
std::int64_t part(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

ActivationLayouts layouts_of(LayerSplit split) {
  constexpr Sbp kB = Sbp::broadcast();
  constexpr Sbp kP = Sbp::partial();
  switch (split) {
    case LayerSplit::Whole:
      return {.input = kB, .output = kB, .output_grad = kB, .input_grad = kB};
    case LayerSplit::Columns:
      return {.input = kB, .output = kByFeatures, .output_grad = kByFeatures, .input_grad = kP};
    case LayerSplit::Rows:
      return {.input = kByFeatures, .output = kP, .output_grad = kB, .input_grad = kByFeatures};
    case LayerSplit::Features:
      return {.input = kByFeatures, .output = kByFeatures, .output_grad = kByFeatures, .input_grad = kByFeatures};
    case LayerSplit::Tokens:
      return {.input = kByTokens, .output = kByTokens, .output_grad = kByTokens, .input_grad = kByTokens};
    case LayerSplit::Vocabulary:
      return {.input = kB, .output = kP, .output_grad = kB, .input_grad = kB};
  }
  assertion_failed("every split has its layouts", __FILE__, __LINE__);
}

Sbp layout_of(const Variable& variable, LayerSplit split) {
  const auto axes = static_cast<int>(variable.shape.size());
  if (axes == 0) return Sbp::broadcast();
  switch (split) {
    case LayerSplit::Columns:
    case LayerSplit::Vocabulary:
      return Sbp::split(0);
    case LayerSplit::Rows:
      return axes > 1 ? Sbp::split(axes - 1) : Sbp::broadcast();
    case LayerSplit::Features:
      return Sbp::split(axes - 1);
    case LayerSplit::Whole:
    case LayerSplit::Tokens:
      break;
  }
  return Sbp::broadcast();
}

std::vector<LayerSplit> megatron_splits(const Model& model, bool sequence) {
  std::vector<LayerSplit> out;
  for (LayerId id = 0; id < model.layer_count(); ++id) {
    const std::vector<LayerId> inputs = inputs_of(model, id);
    const bool reads_features = std::any_of(
        inputs.begin(), inputs.end(), [&](LayerId input) { return layouts_of(out[input]).output == kByFeatures; });
    out.push_back(split_of(model, id, reads_features, sequence));
  }
  return out;
}

LayerBoxings layer_boxings(const Model& model, const std::vector<LayerSplit>& splits) {
  const std::size_t layers = model.layer_count();
  LayerBoxings out{.before_forward = std::vector<std::vector<TensorBoxing>>(layers),
                   .before_backward = std::vector<std::vector<TensorBoxing>>(layers)};
  const auto add = [](std::vector<TensorBoxing>& boxings, BoxingOp op, double bytes) {
    if (op != BoxingOp::None && op != BoxingOp::Slice) boxings.push_back({op, bytes});
  };
  for (LayerId id = 0; id < layers; ++id) {
    const double bytes = model.layer(id).output_bytes;
    const ActivationLayouts here = layouts_of(splits[id]);
    std::set<Sbp> asked;
    std::set<Sbp> given;
    LayerId last_columns = layers;
    auto [next, end] = boost::adjacent_vertices(id, model.graph());
    std::set<LayerId> readers(next, end);
    for (const LayerId reader : readers) {
      const ActivationLayouts there = layouts_of(splits[reader]);
      if (asked.insert(there.input).second)
        add(out.before_forward[reader], conversion(here.output, there.input), bytes);
      if (given.insert(there.input_grad).second)
        add(out.before_backward[id], conversion(there.input_grad, here.output_grad), bytes);
      if (splits[reader] == LayerSplit::Columns) last_columns = reader;
    }
    if (here.output == kByTokens && last_columns < layers)
      add(out.before_backward[last_columns], BoxingOp::AllGather, bytes);
  }
  constexpr double kNumbers = 3.0;
  constexpr double kWidth = 4.0;
  for (LayerId id = 0; id < layers; ++id) {
    if (model.layer(id).kind != LayerKind::Loss || splits[id] != LayerSplit::Features) continue;
    for (const LayerId input : inputs_of(model, id))
      add(out.before_forward[id], BoxingOp::AllReduce, kNumbers * kWidth * model.layer(input).dense_rows);
  }
  return out;
}

Layer part_of(const Layer& layer, LayerSplit split, int ranks) {
  Layer out = layer;
  out.variables.clear();
  if (split == LayerSplit::Whole || ranks == 1) return out;
  const double share = 1.0 / ranks;
  const bool computes_all = split == LayerSplit::Vocabulary;  // every row is looked up, or left zero
  const bool reads_part = layouts_of(split).input.is_split();
  const bool writes_part = layouts_of(split).output.is_split();
  if (!computes_all) {
    out.forward_flops = share * layer.forward_flops;
    out.backward_flops = share * layer.backward_flops;
    out.operation.pointwise_flops *= share;
    out.operation.pointwise_bytes *= share;
  }
  if (reads_part) out.input_bytes *= share;
  if (writes_part) {
    out.output_bytes *= share;
    out.mask_bytes *= share;
  }
  if (split == LayerSplit::Tokens) out.dense_rows *= share;
  for (MatrixProduct& product : out.operation.products) {
    if (split == LayerSplit::Features && product.heads % ranks != 0)
      throw PlanError(fmt::format("layer '{}' has {} heads, which {} tensor-parallel ranks do not divide evenly",
                                  layer.name, product.heads, ranks));
    if (const auto axis = cut_of(split)) product = part_of(product, {.axis = *axis, .parts = ranks});
  }
  return out;
}

std::vector<std::int64_t> part_of(const Variable& variable, LayerSplit split, int ranks) {
  std::vector<std::int64_t> shape = variable.shape;
  const Sbp layout = layout_of(variable, split);
  if (!layout.is_split()) return shape;
  std::int64_t& length = shape[static_cast<std::size_t>(layout.axis)];
  length = part(length, ranks);
  return shape;
}

}  // namespace simsync
