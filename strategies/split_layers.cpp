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

/// Ceiling of a / b.
std::int64_t part(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

TensorState input_of(LayerSplit split) {
  switch (split) {
    case LayerSplit::Rows:
    case LayerSplit::Features:
      return TensorState::Features;
    case LayerSplit::Tokens:
      return TensorState::Tokens;
    case LayerSplit::Whole:
    case LayerSplit::Columns:
    case LayerSplit::Vocabulary:
      return TensorState::Whole;
  }
  return TensorState::Whole;
}

TensorState output_of(LayerSplit split) {
  switch (split) {
    case LayerSplit::Columns:
    case LayerSplit::Features:
      return TensorState::Features;
    case LayerSplit::Tokens:
      return TensorState::Tokens;
    case LayerSplit::Rows:
    case LayerSplit::Vocabulary:
      return TensorState::Partial;
    case LayerSplit::Whole:
      return TensorState::Whole;
  }
  return TensorState::Whole;
}

TensorState input_gradient_of(LayerSplit split) {
  return split == LayerSplit::Columns ? TensorState::Partial : input_of(split);
}

TensorState output_gradient_of(LayerSplit split) {
  const TensorState output = output_of(split);
  return output == TensorState::Partial ? TensorState::Whole : output;
}

std::vector<LayerSplit> megatron_splits(const Model& model, bool sequence) {
  std::vector<LayerSplit> out;
  for (LayerId id = 0; id < model.layer_count(); ++id) {
    const std::vector<LayerId> inputs = inputs_of(model, id);
    const bool reads_features = std::any_of(
        inputs.begin(), inputs.end(), [&](LayerId input) { return output_of(out[input]) == TensorState::Features; });
    out.push_back(split_of(model, id, reads_features, sequence));
  }
  return out;
}

Boxing boxing(TensorState from, TensorState to) {
  if (from == to) return Boxing::None;
  if (from == TensorState::Partial && to == TensorState::Whole) return Boxing::AllReduce;
  if (from == TensorState::Partial && to != TensorState::Whole) return Boxing::ReduceScatter;
  if (to == TensorState::Whole) return Boxing::AllGather;
  if (from == TensorState::Whole && to != TensorState::Partial) return Boxing::Slice;
  throw PlanError("no layer here asks for one split of a tensor in place of another");
}

BoxingSteps boxing_steps(const Model& model, const std::vector<LayerSplit>& splits) {
  const std::size_t layers = model.layer_count();
  BoxingSteps out{.before_forward = std::vector<std::vector<BoxingStep>>(layers),
                  .before_backward = std::vector<std::vector<BoxingStep>>(layers)};
  const auto add = [](std::vector<BoxingStep>& steps, Boxing kind, double bytes) {
    if (kind != Boxing::None && kind != Boxing::Slice) steps.push_back({kind, bytes});
  };
  for (LayerId id = 0; id < layers; ++id) {
    const double bytes = model.layer(id).output_bytes;
    const TensorState made = output_of(splits[id]);
    const TensorState needed = output_gradient_of(splits[id]);
    std::set<TensorState> asked;
    std::set<TensorState> given;
    LayerId last_columns = layers;
    auto [next, end] = boost::adjacent_vertices(id, model.graph());
    std::set<LayerId> readers(next, end);
    for (const LayerId reader : readers) {
      const TensorState input = input_of(splits[reader]);
      if (asked.insert(input).second) add(out.before_forward[reader], boxing(made, input), bytes);
      if (given.insert(input_gradient_of(splits[reader])).second)
        add(out.before_backward[id], boxing(input_gradient_of(splits[reader]), needed), bytes);
      if (splits[reader] == LayerSplit::Columns) last_columns = reader;
    }
    if (made == TensorState::Tokens && last_columns < layers)
      add(out.before_backward[last_columns], Boxing::AllGather, bytes);
  }
  constexpr double kNumbers = 3.0;
  constexpr double kWidth = 4.0;
  for (LayerId id = 0; id < layers; ++id) {
    if (model.layer(id).kind != LayerKind::Loss || splits[id] != LayerSplit::Features) continue;
    for (const LayerId input : inputs_of(model, id))
      add(out.before_forward[id], Boxing::AllReduce, kNumbers * kWidth * model.layer(input).dense_rows);
  }
  return out;
}

Layer part_of(const Layer& layer, LayerSplit split, int ranks) {
  Layer out = layer;
  out.variables.clear();
  if (split == LayerSplit::Whole || ranks == 1) return out;
  const double share = 1.0 / ranks;
  const bool computes_all = split == LayerSplit::Vocabulary;  // every row is looked up, or left zero
  const bool reads_part = input_of(split) != TensorState::Whole;
  const bool writes_part = output_of(split) == TensorState::Features || output_of(split) == TensorState::Tokens;
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
  if (shape.empty() || ranks == 1) return shape;
  switch (split) {
    case LayerSplit::Columns:  // a dense layer's matrix is [out, in], its bias [out]
    case LayerSplit::Vocabulary:
      shape.front() = part(shape.front(), ranks);
      break;
    case LayerSplit::Rows:
      if (shape.size() > 1) shape.back() = part(shape.back(), ranks);
      break;
    case LayerSplit::Features:
      shape.back() = part(shape.back(), ranks);
      break;
    case LayerSplit::Whole:
    case LayerSplit::Tokens:
      break;
  }
  return shape;
}

}  // namespace simsync
