// Attention and recurrence; tensors are [tokens, features].
#include <fmt/format.h>

#include "models/templates.hpp"

namespace simsync::detail {
namespace {

const char* const kSequenceAxes = "[tokens, features]";

/// Query, key and value: three inputs, or one whose features are cut into them.
struct Operands {
  std::vector<Tensor> tensors;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t width = 0;      ///< of all query heads
  std::int64_t key_width = 0;  ///< of all key heads, and of all value heads
  std::int64_t key_heads = 0;

  /// Of the keys alone, and of the values alone.
  [[nodiscard]] double key_bytes() const { return 4.0 * static_cast<double>(keys) * static_cast<double>(key_width); }
};

/// Groups of `heads / key_heads` query heads share a key and a value head.
Operands read_operands(const Statement& s, const std::vector<Tensor>& inputs, std::int64_t heads,
                       std::int64_t key_heads) {
  for (const Tensor& tensor : inputs) s.expect_axes(tensor, 2, kSequenceAxes);
  const Shape& first = inputs.front().shape;
  if (heads % key_heads != 0) s.refuse(fmt::format("{} heads do not share {} key heads evenly", heads, key_heads));
  if (inputs.size() == 1) {
    const std::int64_t parts = heads + 2 * key_heads;
    if (first[1] % parts != 0)
      s.refuse(fmt::format("{} features do not split into query, key and value of {} heads and twice {}", first[1],
                           heads, key_heads));
    const std::int64_t features = first[1] / parts;
    return {inputs, first[0], first[0], heads * features, key_heads * features, key_heads};
  }
  if (inputs.size() != 3) s.refuse(fmt::format("'attention' reads 1 or 3 tensors, got {}", inputs.size()));
  const Shape& key = inputs[1].shape;
  if (first[1] % heads != 0) s.refuse(fmt::format("{} features do not split into {} heads", first[1], heads));
  if (key[1] * (heads / key_heads) != first[1] || key != inputs[2].shape)
    s.refuse(fmt::format("query {}, key {} and value {} do not fit together", text_of(first), text_of(key),
                         text_of(inputs[2].shape)));
  return {inputs, first[0], key[0], first[1], key[1], key_heads};
}

/// One kernel that keeps the scores on the chip (Dao et al., FlashAttention, 2022): it reads query, key and value and
/// writes the context. Its backward pass computes the scores again: five products for the two of the forward pass. A
/// causal one leaves out the keys after each query, half of them.
Tensor fused_attention(Statement& s, const std::string& name, const Operands& operands, std::int64_t heads,
                       bool causal) {
  const std::int64_t features = operands.width / heads;
  const std::int64_t keys = causal ? (operands.keys + 1) / 2 : operands.keys;
  LayerSpec spec{.name = name, .kind = LayerKind::Attention, .output = {operands.queries, operands.width}};
  spec.operation.products = {{operands.queries, features, keys, false, heads},
                             {operands.queries, keys, features, false, heads}};
  spec.operation.first_product_again = true;
  spec.operation.causal = causal;
  spec.operation.key_heads = operands.key_heads;
  spec.operation.key_value_bytes = 2.0 * operands.key_bytes();
  spec.forward_flops = spec.operation.flops();
  spec.backward_ratio = 2.5;  // both products have the same work
  return s.emit(spec, operands.tensors);
}

/// Scaled dot-product attention as the kernels of an unfused framework: NAME.scores, NAME.softmax, NAME.dropout
/// and NAME.context, so that the traffic of the [heads, queries, keys] tensors is counted.
Tensor unfused_attention(Statement& s, const std::string& name, const Operands& operands, std::int64_t heads) {
  const auto width = static_cast<double>(operands.width);
  const Shape scores_shape{heads, operands.queries, operands.keys};
  if (!elements_of(scores_shape)) s.refuse(fmt::format("the scores {} are too large", text_of(scores_shape)));
  const double product = 2.0 * static_cast<double>(operands.queries) * static_cast<double>(operands.keys) * width;
  const double elements = count_of(scores_shape);
  const double query_bytes = 4.0 * static_cast<double>(operands.queries) * width;

  const std::int64_t features = operands.width / heads;
  LayerSpec scores{
      .name = name + ".scores", .kind = LayerKind::Attention, .output = scores_shape, .forward_flops = product};
  scores.backward_ratio = 2.0;
  scores.input_bytes = query_bytes + operands.key_bytes();
  scores.operation.key_heads = operands.key_heads;
  scores.operation.key_value_bytes = operands.key_bytes();
  scores.operation.products = {{operands.queries, features, operands.keys, false, heads}};
  const Tensor raw = s.emit(scores, operands.tensors);
  // Scale, mask and softmax each read and write the scores: three passes of input instead of one.
  LayerSpec softmax{.name = name + ".softmax",
                    .kind = LayerKind::Activation,
                    .output = scores_shape,
                    .forward_flops = 7.0 * elements};
  softmax.backward_ratio = 1.0;
  softmax.input_bytes = 12.0 * elements;
  softmax.saves_output = true;
  const Tensor weights = s.emit(softmax, {raw});
  LayerSpec dropout{.name = name + ".dropout",
                    .kind = LayerKind::Activation,
                    .output = scores_shape,
                    .forward_flops = 2.0 * elements};
  dropout.backward_ratio = 1.0;
  dropout.mask_bytes = elements;
  const Tensor kept = s.emit(dropout, {weights});
  std::vector<Tensor> sources{kept, operands.tensors.back()};
  LayerSpec context{.name = name + ".context",
                    .kind = LayerKind::Attention,
                    .output = {operands.queries, operands.width},
                    .forward_flops = product};
  context.backward_ratio = 2.0;
  context.input_bytes = 4.0 * elements + operands.key_bytes();
  context.operation.key_heads = operands.key_heads;
  context.operation.key_value_bytes = operands.key_bytes();
  context.operation.products = {{operands.queries, operands.keys, features, false, heads}};
  return s.emit(context, sources);
}

Tensor attention(Statement& s) {
  const auto inputs = s.inputs();
  const std::string name = s.name();
  const std::int64_t heads = s.integer("heads");
  const std::int64_t key_heads = s.integer_or("key_heads", heads);
  const bool fused = s.integer_or("fused", 0, 0, 1) == 1;
  const bool causal = s.integer_or("causal", 0, 0, 1) == 1;
  s.close();
  const Operands operands = read_operands(s, inputs, heads, key_heads);
  return fused ? fused_attention(s, name, operands, heads, causal) : unfused_attention(s, name, operands, heads);
}

/// Rotary position embedding of a query or a key: every pair of features is turned by an angle.
Tensor rotary(Statement& s) {
  const Tensor in = s.input();
  s.expect_axes(in, 2, kSequenceAxes);
  const std::string name = s.name();
  s.close();
  // Per pair: four products and two sums.
  return s.emit(
      {.name = name, .kind = LayerKind::Elementwise, .output = in.shape, .forward_flops = 3.0 * count_of(in.shape)},
      {in});
}

/// Bahdanau attention of a decoder over an encoder: inputs query [Tq, H] and memory [Tm, H]; both are projected,
/// added for every pair, squashed and dotted with a vector; the weights then average the memory.
Tensor additive_attention(Statement& s) {
  const auto inputs = s.inputs();
  const std::string name = s.name();
  s.close();
  if (inputs.size() != 2) s.refuse(fmt::format("'additive_attention' reads 2 tensors, got {}", inputs.size()));
  for (const Tensor& tensor : inputs) s.expect_axes(tensor, 2, kSequenceAxes);
  const Shape& query = inputs[0].shape;
  const Shape& memory = inputs[1].shape;
  if (query[1] != memory[1])
    s.refuse(fmt::format("query {} and memory {} differ in features", text_of(query), text_of(memory)));
  const std::int64_t hidden = query[1];
  const auto width = static_cast<double>(hidden);
  const double pairs = static_cast<double>(query[0]) * static_cast<double>(memory[0]) * width;
  const double projections = 2.0 * width * (count_of(query) + count_of(memory));
  LayerSpec spec{.name = name, .kind = LayerKind::Attention, .output = query};
  // Per pair and feature: add, tanh (4), dot (2), average (2).
  spec.forward_flops = projections + 9.0 * pairs;
  // The [Tq, Tm, H] sum is written and read once by tanh and once by the dot product.
  spec.input_bytes = 4.0 * (count_of(query) + 2.0 * count_of(memory) + 4.0 * pairs);
  spec.operation = {.products = {{query[0], hidden, hidden}, {memory[0], hidden, hidden}},
                    .pointwise_flops = 9.0 * pairs,
                    .pointwise_bytes = 16.0 * pairs};
  spec.variables = {
      {"linear_att", {hidden}}, {"linear_q.weight", {hidden, hidden}}, {"linear_k.weight", {hidden, hidden}}};
  return s.emit(spec, inputs);
}

struct LstmFields {
  std::int64_t hidden = 0;
  std::int64_t projection = 0;  ///< 0: none
  bool bidirectional = false;
  bool tensorflow = false;
};

/// PyTorch keeps two matrices and two biases per direction, TensorFlow's LSTMCell one of each.
void add_lstm_variables(LayerSpec& spec, const LstmFields& f, std::int64_t features, const std::string& suffix) {
  const std::int64_t gates = 4 * f.hidden;
  const std::int64_t recurrent = f.projection > 0 ? f.projection : f.hidden;
  if (f.tensorflow) {
    spec.variables.push_back({"kernel" + suffix, {features + recurrent, gates}});
    spec.variables.push_back({"bias" + suffix, {gates}});
    if (f.projection > 0) spec.variables.push_back({"projection" + suffix, {f.hidden, f.projection}});
    return;
  }
  spec.variables.push_back({"weight_ih_l0" + suffix, {gates, features}});
  spec.variables.push_back({"weight_hh_l0" + suffix, {gates, recurrent}});
  spec.variables.push_back({"bias_ih_l0" + suffix, {gates}});
  spec.variables.push_back({"bias_hh_l0" + suffix, {gates}});
  if (f.projection > 0) spec.variables.push_back({"weight_hr_l0" + suffix, {f.projection, f.hidden}});
}

/// The input meets its weights for all tokens at once; the state follows token by token.
Operation lstm_operation(const LstmFields& f, const Shape& in) {
  const std::int64_t directions = f.bidirectional ? 2 : 1;
  const std::int64_t gates = 4 * f.hidden;
  const std::int64_t state = f.projection > 0 ? f.projection : f.hidden;
  const std::int64_t tokens = in[0];
  Operation operation{.products = {{.rows = tokens, .inner = in[1], .columns = gates, .steps = directions},
                                   {.rows = 1, .inner = state, .columns = gates, .steps = directions * tokens}}};
  if (f.projection > 0)
    operation.products.push_back({.rows = 1, .inner = f.hidden, .columns = f.projection, .steps = directions * tokens});
  // Per unit and token: four gates read from either product, the cell read and written, the output written.
  constexpr double kValues = 11.0;
  operation.pointwise_bytes = 4.0 * kValues * static_cast<double>(directions * tokens * f.hidden);
  return operation;
}

Tensor lstm(Statement& s) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 24;
  const Tensor in = s.input();
  s.expect_axes(in, 2, kSequenceAxes);
  LstmFields f;
  const std::string name = s.name();
  f.hidden = s.integer("hidden", 1, kLargest);
  f.projection = s.integer_or("projection", 0, 0, kLargest);
  f.bidirectional = s.flag_or("bidirectional", false);
  if (const yaml::Node style = s.field("style")) f.tensorflow = style.choice({"pytorch", "tensorflow"}) == 1;
  s.close();
  const std::int64_t output = f.projection > 0 ? f.projection : f.hidden;
  const auto directions = f.bidirectional ? 2 : 1;
  const auto tokens = static_cast<double>(in.shape[0]);
  const auto hidden = static_cast<double>(f.hidden);
  const double gates = 2.0 * 4.0 * hidden * static_cast<double>(in.shape[1] + output);
  const double projection = 2.0 * hidden * static_cast<double>(f.projection);
  // Per unit and step: three sigmoids, two tanh (4 each), three products and a sum.
  const double elementwise = 24.0 * hidden;
  LayerSpec spec{.name = name, .kind = LayerKind::Recurrent, .output = {in.shape[0], output * directions}};
  spec.forward_flops = directions * tokens * (gates + projection + elementwise);
  spec.dense_rows = tokens;
  spec.operation = lstm_operation(f, in.shape);
  spec.operation.pointwise_flops = directions * tokens * elementwise;
  add_lstm_variables(spec, f, in.shape[1], "");
  if (f.bidirectional) add_lstm_variables(spec, f, in.shape[1], "_reverse");
  return s.emit(spec, {in});
}

}  // namespace

const std::vector<NamedTemplate>& sequence_templates() {
  static const std::vector<NamedTemplate> kTemplates{
      {"attention", attention}, {"rotary", rotary}, {"additive_attention", additive_attention}, {"lstm", lstm}};
  return kTemplates;
}

}  // namespace simsync::detail
