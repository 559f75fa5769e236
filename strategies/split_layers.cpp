#include "strategies/split_layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "models/product_time.hpp"
#include "strategies/rules.hpp"

namespace simsync {
namespace {

std::vector<LayerId> readers_of(const Model& model, LayerId id) {
  const auto [begin, end] = boost::adjacent_vertices(id, model.graph());
  return {begin, end};
}

[[noreturn]] void refuse(const Model& model, const Layer& layer, const std::string& why) {
  throw PlanError(
      fmt::format("tensor parallelism cannot split layer '{}' of model '{}': {}", layer.name, model.name(), why));
}

bool is_of_samples(LayerKind kind) {
  return kind == LayerKind::Conv || kind == LayerKind::Pool || kind == LayerKind::Recurrent;
}

/// Whether a layer is shared out by samples, because it has no tokens that are independent of each other.
bool has_layers_of_samples(const Model& model) {
  for (LayerId id = 0; id < model.layer_count(); ++id)
    if (is_of_samples(model.layer(id).kind)) return true;
  return false;
}

/// The rule for one layer, and the splits of all before it.
class SplitRule {
public:
  SplitRule(const Model& model, const ModelParallel& parallel)
      : model_(model),
        parallel_(parallel),
        by_samples_(has_layers_of_samples(model)),
        rest_(parallel.sequence || by_samples_ ? LayerSplit::Tokens : LayerSplit::Whole) {}

  [[nodiscard]] LayerSplit split_of(LayerId id, bool reads_features) const {
    const Layer& layer = model_.layer(id);
    switch (layer.kind) {
      case LayerKind::Embedding:
        return by_samples_ ? LayerSplit::Tokens : LayerSplit::Vocabulary;
      case LayerKind::Dense:
        if (is_router(id)) return rest_;
        if (layer.experts == 0 && layer.dense_rows <= 0.0) refuse(model_, layer, "it multiplies rows that are sampled");
        return reads_features ? LayerSplit::Rows : LayerSplit::Columns;
      case LayerKind::Attention:
        if (reads_features) return LayerSplit::Features;
        if (by_samples_) return LayerSplit::Tokens;
        if (parallel_.splits.empty()) refuse(model_, layer, "it reads no heads that a dense layer before it has split");
        return LayerSplit::Whole;
      case LayerKind::Norm:
        return reads_features ? LayerSplit::Whole : rest_;  // it needs whole rows: they are gathered
      case LayerKind::Activation:
      case LayerKind::Elementwise:
      case LayerKind::Loss:
        if (reads_features) return LayerSplit::Features;
        return layer.kind == LayerKind::Loss && !by_samples_ ? LayerSplit::Whole : rest_;
      case LayerKind::Conv:
      case LayerKind::Pool:
      case LayerKind::Recurrent:
        return LayerSplit::Tokens;
    }
    return rest_;
  }

private:
  /// It has an output for each expert and reads what is dispatched to them.
  [[nodiscard]] bool is_router(LayerId id) const {
    const Layer& layer = model_.layer(id);
    if (layer.experts > 0 || layer.variables.empty()) return false;
    const std::vector<std::int64_t>& shape = model_.variable(layer.variables.front()).shape;
    const std::vector<LayerId> read = inputs_of(model_, id);
    for (const LayerId input : read)
      for (const LayerId dispatch : readers_of(model_, input))
        for (const LayerId reader : readers_of(model_, dispatch))
          if (model_.layer(reader).experts > 0 && !model_.layer(dispatch).at_experts && !shape.empty() &&
              shape.front() == model_.layer(reader).experts)
            return true;
    return false;
  }

  const Model& model_;
  const ModelParallel& parallel_;
  bool by_samples_;
  LayerSplit rest_;
};

/// Whether an operator of this kind has such a signature.
bool can_have(LayerKind kind, LayerSplit split) {
  switch (split) {
    case LayerSplit::Whole:
      return true;
    case LayerSplit::Tokens:
      return kind != LayerKind::Attention;
    case LayerSplit::Columns:
    case LayerSplit::Rows:
      return kind == LayerKind::Dense;
    case LayerSplit::Vocabulary:
      return kind == LayerKind::Embedding;
    case LayerSplit::Features:
      return kind == LayerKind::Attention || kind == LayerKind::Activation || kind == LayerKind::Elementwise ||
             kind == LayerKind::Loss;
  }
  return false;
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

/// Heads cannot be cut, and of keys and values there may be fewer than of queries.
void check_heads(const Layer& attention, int ranks) {
  const std::int64_t heads = attention.operation.products.empty() ? 0 : attention.operation.products.front().heads;
  if (heads % ranks != 0)
    throw PlanError(fmt::format("layer '{}' has {} heads, which {} tensor-parallel ranks do not divide evenly",
                                attention.name, heads, ranks));
  const std::int64_t of_keys = attention.operation.key_heads;
  if (of_keys % ranks != 0)
    throw PlanError(
        fmt::format("layer '{}' has {} heads of keys and values, which {} tensor-parallel ranks do not divide evenly",
                    attention.name, of_keys, ranks));
}

/// One of so many equal parts, without the variables. Keys and values are cut along their heads alone.
Layer share_of(const Layer& layer, LayerSplit split, int ranks) {
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
  if (split == LayerSplit::Features) out.operation.key_value_bytes *= share;
  if (split == LayerSplit::Features && layer.kind == LayerKind::Attention) check_heads(layer, ranks);
  for (MatrixProduct& product : out.operation.products)
    if (const auto axis = cut_of(split)) product = part_of(product, {.axis = *axis, .parts = ranks});
  return out;
}

/// A causal attention of one of so many equal runs of queries, of which the last one sees 1 - 1 / (2 ranks) of the keys
/// on average, not half.
void see_as_the_last(Layer& attention, int ranks) {
  const double more = (2.0 * ranks - 1.0) / ranks;
  attention.forward_flops *= more;
  attention.backward_flops *= more;
  const auto longer = [&](std::int64_t& keys) { keys = std::llround(more * static_cast<double>(keys)); };
  longer(attention.operation.products.front().columns);
  longer(attention.operation.products.back().inner);
}

/// Ceiling of a / b.
std::int64_t part(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

std::vector<LayerId> inputs_of(const Model& model, LayerId id) {
  const auto [begin, end] = boost::inv_adjacent_vertices(id, model.graph());
  return {begin, end};
}

int experts_of(const Model& model) {
  for (LayerId id = 0; id < model.layer_count(); ++id)
    if (model.layer(id).experts > 0) return model.layer(id).experts;
  return 0;
}

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

std::vector<LayerSplit> splits_of(const Model& model, const ModelParallel& parallel) {
  if (parallel.tensor == 1) return std::vector<LayerSplit>(model.layer_count(), LayerSplit::Whole);
  const SplitRule rule(model, parallel);
  std::set<const SplitChoice*> used;
  std::vector<LayerSplit> out;
  for (LayerId id = 0; id < model.layer_count(); ++id) {
    const Layer& layer = model.layer(id);
    const auto chosen = std::find_if(parallel.splits.begin(), parallel.splits.end(), [&](const SplitChoice& choice) {
      return matches_glob(choice.layers, layer.name);
    });
    if (chosen != parallel.splits.end()) {
      used.insert(&*chosen);
      if (!can_have(layer.kind, chosen->split) || (layer.experts > 0 && chosen->split == LayerSplit::Tokens))
        refuse(model, layer,
               fmt::format("layers of kind {} are not split by {}", name_of(layer.kind), name_of(chosen->split)));
      out.push_back(chosen->split);
      continue;
    }
    const std::vector<LayerId> inputs = inputs_of(model, id);
    const bool reads_features = std::any_of(
        inputs.begin(), inputs.end(), [&](LayerId input) { return layouts_of(out[input]).output == kByFeatures; });
    out.push_back(rule.split_of(id, reads_features));
  }
  for (const SplitChoice& choice : parallel.splits)
    if (!used.contains(&choice))
      throw PlanError(fmt::format("no layer of model '{}' is split by {}: none of that name, or one before it matches",
                                  model.name(), text_of({choice})));
  return out;
}

void check_samples(const Model& model, const ModelParallel& parallel, std::int64_t batch) {
  if (parallel.tensor == 1 || batch % parallel.tensor == 0 || !has_layers_of_samples(model)) return;
  throw PlanError(
      fmt::format("micro-batches of {} do not divide among {} tensor-parallel ranks, which share out layers "
                  "of model '{}' by samples",
                  batch, parallel.tensor, model.name()));
}

std::optional<std::string> obstacle_to_context(const Model& model, const ModelParallel& parallel) {
  const std::int64_t ranks = parallel.context;
  for (LayerId id = 0; id < model.layer_count() && ranks > 1; ++id) {
    const Layer& layer = model.layer(id);
    if (is_of_samples(layer.kind)) return fmt::format("layer '{}' looks at whole samples", layer.name);
    if (layer.kind == LayerKind::Attention && layer.operation.key_value_bytes <= 0.0)
      return fmt::format("the keys and values of layer '{}' are not known", layer.name);
    const bool halves = parallel.context_balanced && layer.operation.causal;
    if (halves && layer.operation.products.front().rows % (2 * ranks) != 0)
      return fmt::format("the {} queries of layer '{}' do not divide into two runs for each rank",
                         layer.operation.products.front().rows, layer.name);
    if (layer.kind == LayerKind::Dense && std::fmod(layer.dense_rows, static_cast<double>(ranks)) != 0.0)
      return fmt::format("the {} rows of layer '{}' do not divide", layer.dense_rows, layer.name);
  }
  return std::nullopt;
}

Layer part_of(const Layer& layer, LayerSplit split, const ModelParallel& parallel) {
  Layer out = share_of(layer, split, parallel.tensor);
  if (parallel.context == 1) return out;
  const double keys = out.operation.key_value_bytes;
  const double queries = out.input_bytes - keys;
  out = share_of(out, LayerSplit::Tokens, parallel.context);
  if (keys > 0.0) out.input_bytes = queries / parallel.context + keys;
  if (!parallel.context_balanced && out.operation.causal) see_as_the_last(out, parallel.context);
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
