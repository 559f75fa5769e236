// Splits of layers against the signatures of operators, and the operations that convert between neighbors.
#include "strategies/split_layers.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "models/reader.hpp"
#include "sim/engine/engine.hpp"
#include "sim/problem/problem.hpp"
#include "strategies/sbp/op_signatures.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

constexpr Sbp kB = Sbp::broadcast();
constexpr Sbp kP = Sbp::partial();

bool has(const TensorOpCall& call, const std::vector<Sbp>& inputs, const std::vector<Sbp>& outputs) {
  const std::vector<OpSignature> all = signatures(call);
  return std::any_of(all.begin(), all.end(),
                     [&](const OpSignature& one) { return one.inputs == inputs && one.outputs == outputs; });
}

/// Of the variable [out, in] as the second factor [in, out] of a product, or of what is multiplied back with it.
Sbp transposed(Sbp layout) {
  return layout.is_split() ? Sbp::split(1 - layout.axis) : layout;
}

/// The matrix of a dense layer; [out, in] as any other where it is another layer's table.
Variable matrix_of(const Model& model, const Layer& layer) {
  for (const VariableId id : layer.variables)
    if (model.variable(id).shape.size() > 1) return model.variable(id);
  const MatrixProduct& product = layer.operation.products.front();
  return {.name = "table", .shape = {product.columns, product.inner}};
}

/// Y = X W and dX = dY W^T.
bool is_legal_product(const Model& model, const Layer& layer, LayerSplit split) {
  const MatrixProduct& product = layer.operation.products.front();
  const ActivationLayouts of = layouts_of(split);
  const Sbp weight = layout_of(matrix_of(model, layer), split);
  return has(matmul_call(product.rows, product.inner, product.columns), {of.input, transposed(weight)}, {of.output}) &&
         has(matmul_call(product.rows, product.columns, product.inner), {of.output_grad, weight}, {of.input_grad});
}

/// Heads are an axis of their own, before those of the products: [heads, rows, inner] [heads, inner, columns].
bool is_legal_attention(const Layer& layer, LayerSplit split) {
  const ActivationLayouts of = layouts_of(split);
  const auto by_heads = [](Sbp layout) { return layout == kByFeatures ? Sbp::split(0) : layout; };
  return std::all_of(layer.operation.products.begin(), layer.operation.products.end(), [&](const MatrixProduct& one) {
    const TensorOpCall call{.op = TensorOp::Matmul,
                            .inputs = {{one.heads, one.rows, one.inner}, {one.heads, one.inner, one.columns}},
                            .outputs = {{one.heads, one.rows, one.columns}}};
    return has(call, {by_heads(of.input), by_heads(of.input)}, {by_heads(of.output)});
  });
}

/// Of [tokens, features]; what is elementwise in the sense of the signatures whether or not it is linear.
bool is_legal_elementwise(LayerSplit split) {
  const ActivationLayouts of = layouts_of(split);
  const TensorOpCall call{.op = TensorOp::NonLinear, .inputs = {{64, 32}}, .outputs = {{64, 32}}};
  return has(call, {of.input}, {of.output}) && has(call, {of.output_grad}, {of.input_grad});
}

bool is_legal(const Model& model, const Layer& layer, LayerSplit split) {
  const ActivationLayouts of = layouts_of(split);
  switch (layer.kind) {
    case LayerKind::Dense:
      return is_legal_product(model, layer, split);
    case LayerKind::Attention:
      return is_legal_attention(layer, split);
    case LayerKind::Embedding: {
      const Variable& table = model.variable(layer.variables.front());
      const TensorOpCall call{
          .op = TensorOp::Gather, .inputs = {{64}, table.shape}, .outputs = {{64, table.shape.back()}}};
      return has(call, {of.input, layout_of(table, split)}, {of.output});
    }
    case LayerKind::Norm: {
      const TensorOpCall call{
          .op = TensorOp::LayerNorm, .inputs = {{64, 32}, {32}, {32}}, .outputs = {{64, 32}}, .axis = 1};
      return has(call, {of.input, kB, kB}, {of.output});
    }
    case LayerKind::Loss: {
      // Over a split vocabulary it is none of an operator: ranks exchange inside of it (layer_boxings).
      const TensorOpCall call{.op = TensorOp::Softmax, .inputs = {{64, 32}}, .outputs = {{64, 32}}, .axis = 1};
      const bool legal = has(call, {of.input}, {of.output});
      return split == LayerSplit::Features ? !legal : legal;
    }
    default:
      return is_legal_elementwise(split);
  }
}

}  // namespace

TEST_CASE("every split that a transformer's layer gets is a signature of its operator", "[parallel]") {
  for (const char* name : {"gpt2", "bert-base", "llama3-8b", "mpt-125m"}) {
    const Model model = find_model(name);
    for (const bool sequence : {false, true}) {
      const std::vector<LayerSplit> splits = splits_of(model, {.tensor = 2, .sequence = sequence});
      for (LayerId id = 0; id < model.layer_count(); ++id) {
        INFO(name << ", " << model.layer(id).name << ", split " << static_cast<int>(splits[id]));
        CHECK(is_legal(model, model.layer(id), splits[id]));
      }
    }
  }
}

TEST_CASE("a split that is no signature is told from one that is", "[parallel]") {
  // Rows of a product's second factor need columns of the first: whole columns do not fit.
  CHECK(has(matmul_call(64, 32, 16), {kByFeatures, Sbp::split(0)}, {kP}));
  CHECK_FALSE(has(matmul_call(64, 32, 16), {kB, Sbp::split(0)}, {kP}));
  const Model model = find_model("gpt2");
  for (LayerId id = 0; id < model.layer_count(); ++id) {
    if (model.layer(id).kind == LayerKind::Dense) CHECK_FALSE(is_legal(model, model.layer(id), LayerSplit::Features));
    if (model.layer(id).kind == LayerKind::Norm) CHECK_FALSE(is_legal(model, model.layer(id), LayerSplit::Features));
  }
}

TEST_CASE("variables are cut along the axis that the split says", "[parallel]") {
  const Variable matrix{.name = "m", .shape = {10, 6}};
  const Variable bias{.name = "b", .shape = {10}};
  CHECK(layout_of(matrix, LayerSplit::Columns) == Sbp::split(0));
  CHECK(layout_of(bias, LayerSplit::Columns) == Sbp::split(0));
  CHECK(layout_of(matrix, LayerSplit::Rows) == Sbp::split(1));
  CHECK(layout_of(bias, LayerSplit::Rows) == kB);  // added once, to the sum
  CHECK(layout_of(matrix, LayerSplit::Vocabulary) == Sbp::split(0));
  CHECK(layout_of(matrix, LayerSplit::Tokens) == kB);
  CHECK(layout_of({.name = "s", .shape = {}}, LayerSplit::Columns) == kB);
  // Ten rows on four ranks: three, three, two, two.
  CHECK(part_of(matrix, LayerSplit::Columns, 4) == std::vector<std::int64_t>{3, 6});
  CHECK(part_of(matrix, LayerSplit::Rows, 4) == std::vector<std::int64_t>{10, 2});
}

TEST_CASE("one split in place of another is an all-to-all", "[parallel]") {
  Model model("two", 1, "row");
  Layer layer{.name = "first", .kind = LayerKind::Elementwise};
  layer.output_bytes = 400.0;
  const LayerId first = model.add_layer(layer, {});
  layer.name = "second";
  model.add_layer(layer, {first});
  const LayerBoxings boxings = layer_boxings(model, {LayerSplit::Features, LayerSplit::Tokens}, {.tensor = 2});
  REQUIRE(boxings.before_forward[1].size() == 1);
  CHECK(boxings.before_forward[1].front().op == BoxingOp::AllToAll);
  CHECK(boxings.before_forward[1].front().bytes == 400.0);
  REQUIRE(boxings.before_backward[0].size() == 1);
  CHECK(boxings.before_backward[0].front().op == BoxingOp::AllToAll);
}

TEST_CASE("classifiers of convolutional networks are split beside shares of samples", "[parallel]") {
  const Model model = find_model("vgg16");
  const std::vector<LayerSplit> splits = splits_of(model, {.tensor = 4});
  const auto split = [&](const std::string& name) {
    for (LayerId id = 0; id < model.layer_count(); ++id)
      if (model.layer(id).name == name) return splits[id];
    return LayerSplit::Vocabulary;
  };
  CHECK(split("fc6") == LayerSplit::Columns);
  CHECK(split("relu6") == LayerSplit::Features);
  CHECK(split("fc7") == LayerSplit::Rows);
  CHECK(split("relu7") == LayerSplit::Tokens);
  CHECK(split("fc8") == LayerSplit::Columns);
  CHECK(splits.front() == LayerSplit::Tokens);
  const auto chosen = splits_of(model, {.tensor = 4, .splits = parse_split_choices("fc?:tokens")});
  for (const LayerSplit one : chosen) CHECK(one == LayerSplit::Tokens);
}

TEST_CASE("layers that all are shared out by samples exchange what data parallelism does", "[parallel]") {
  // Four ranks that share out 32 samples as one replica, against four replicas of 8: the same gradients are summed
  // among the same ranks, in the same buckets, and the same passes take as long.
  PredictRequest request{.model = "vgg16", .cluster = "titanx-40gbe", .strategy = "ddp", .workers = 4};
  request.batch = 8;
  const Problem data = prepare(request);
  request.batch = 32;
  request.settings = {{"strategy.tensor", "4"}, {"strategy.splits", "fc?:tokens"}};
  const Problem split = prepare(request);
  const auto reduced = [](const Plan& plan) {
    double bytes = 0.0;
    for (const Op& op : plan.ops) {
      if (op.kind() != OpKind::Collective) continue;
      CHECK(plan.grouping(op.grouping).ranks(0).size() == 4);
      CHECK(op.collective().primitive == CollectivePrimitive::AllReduce);
      bytes += op.collective().bytes;
    }
    return bytes;
  };
  CHECK(reduced(split.plan) == reduced(data.plan));
  const double step = replay(data.plan, data.cluster, data.options).step.value();
  CHECK_THAT(replay(split.plan, split.cluster, split.options).step.value(), Catch::Matchers::WithinRel(step, 0.05));
}
