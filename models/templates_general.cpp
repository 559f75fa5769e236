// Layers that work element by element, and those that only rearrange.
#include <fmt/format.h>

#include <algorithm>

#include "models/templates.hpp"

namespace simsync::detail {
namespace {

/// What the backward pass of an activation reads again.
enum class Saves { Nothing, Input, Output, Mask };

/// Operations per element; only their order of magnitude matters, since such layers are bound by memory.
Tensor pointwise(Statement& s, double flops_per_element, Saves saves) {
  const Tensor in = s.input();
  const std::string name = s.name();
  s.close();
  const double elements = count_of(in.shape);
  return s.emit({.name = name,
                 .kind = LayerKind::Activation,
                 .output = in.shape,
                 .forward_flops = flops_per_element * elements,
                 .saves_input = saves == Saves::Input,
                 .saves_output = saves == Saves::Output,
                 .mask_bytes = saves == Saves::Mask ? elements : 0.0},
                {in});
}

/// It overwrites its input with its output, which the next layer keeps.
Tensor relu(Statement& s) {
  return pointwise(s, 1.0, Saves::Nothing);
}
Tensor dropout(Statement& s) {
  return pointwise(s, 2.0, Saves::Mask);
}
Tensor gelu(Statement& s) {
  return pointwise(s, 8.0, Saves::Input);
}
/// tanh and sigmoid
Tensor transcendental(Statement& s) {
  return pointwise(s, 4.0, Saves::Output);
}
Tensor softmax(Statement& s) {
  return pointwise(s, 5.0, Saves::Output);
}
/// x / (1 + exp(-x))
Tensor silu(Statement& s) {
  return pointwise(s, 5.0, Saves::Input);
}

/// add and multiply: all inputs of one shape, one operation per element and further input.
Tensor combine(Statement& s) {
  const auto inputs = s.inputs();
  const std::string name = s.name();
  s.close();
  for (const Tensor& tensor : inputs) {
    if (tensor.shape != inputs.front().shape)
      s.refuse(fmt::format("the inputs of '{}' differ in shape: {} and {}", s.keyword(), text_of(inputs.front().shape),
                           text_of(tensor.shape)));
  }
  const double operations = static_cast<double>(inputs.size()) - 1.0;
  return s.emit({.name = name,
                 .kind = LayerKind::Elementwise,
                 .output = inputs.front().shape,
                 .forward_flops = operations * count_of(inputs.front().shape),
                 .saves_input = s.keyword() == "multiply"},
                inputs);
}

Tensor concat(Statement& s) {
  const auto inputs = s.inputs();
  const std::string name = s.name();
  const Shape& first = inputs.front().shape;
  const auto last_axis = static_cast<std::int64_t>(std::max<std::size_t>(first.size(), 1)) - 1;
  const auto axis =
      static_cast<std::size_t>(s.integer_or("axis", static_cast<std::int64_t>(feature_axis(first)), 0, last_axis));
  s.close();
  Shape output = first;
  output[axis] = 0;
  for (const Tensor& tensor : inputs) {
    Shape rest = tensor.shape;
    if (rest.size() == first.size()) rest[axis] = first[axis];
    if (rest != first)
      s.refuse(fmt::format("{} and {} cannot be joined along axis {}", text_of(first), text_of(tensor.shape), axis));
    output[axis] += tensor.shape[axis];
  }
  return s.emit({.name = name, .kind = LayerKind::Elementwise, .output = output}, inputs);
}

/// Flatten and reshape add no layer; `name` lets `from` find the reshaped tensor.
Tensor reshaped(Statement& s, const Tensor& tensor, const std::string& name) {
  if (!name.empty()) s.builder().define(s.node(), name, tensor);
  return tensor;
}

std::string optional_name(Statement& s) {
  const yaml::Node name = s.field("name");
  return name ? s.scope().full_name(checked_name(name)) : "";
}

/// `flatten: all` gives [elements]; `flatten: spatial` gives [height x width, channels].
Tensor flatten(Statement& s) {
  Tensor tensor = s.input();
  const bool spatial = s.field("flatten").choice({"all", "spatial"}) == 1;
  const std::string name = optional_name(s);
  s.close();
  if (spatial) s.expect_axes(tensor, 3, "[channels, height, width]");
  const std::int64_t elements = elements_of(tensor.shape).value_or(1);
  tensor.shape = spatial ? Shape{elements / tensor.shape[0], tensor.shape[0]} : Shape{elements};
  return reshaped(s, tensor, name);
}

Tensor reshape(Statement& s) {
  Tensor tensor = s.input();
  const Shape shape = s.shape(s.field("reshape"));
  const std::string name = optional_name(s);
  s.close();
  if (elements_of(shape) != elements_of(tensor.shape))
    s.refuse(fmt::format("{} and {} differ in their number of elements", text_of(tensor.shape), text_of(shape)));
  tensor.shape = shape;
  return reshaped(s, tensor, name);
}

/// The first `rows` rows of a sequence: the class token, or the masked positions gathered to the front.
Tensor slice(Statement& s) {
  const Tensor in = s.input();
  s.expect_axes(in, 2, "[tokens, features]");
  const std::string name = s.name();
  const std::int64_t rows = s.integer("rows", 1, in.shape[0]);
  s.close();
  const Shape output{rows, in.shape[1]};
  return s.emit({.name = name, .kind = LayerKind::Elementwise, .output = output, .input_bytes = 4.0 * count_of(output)},
                {in});
}

/// Sends every row of a sequence to `top` experts: a copy of it for each, [tokens * top, features].
Tensor dispatch(Statement& s) {
  const Tensor in = s.input();
  s.expect_axes(in, 2, "[tokens, features]");
  const std::string name = s.name();
  const std::int64_t top = s.integer("top", 1, kMaxElements / in.shape[0]);
  s.close();
  return s.emit({.name = name,
                 .kind = LayerKind::Elementwise,
                 .output = {top * in.shape[0], in.shape[1]},
                 .routing = LayerSpec::Routing::Dispatch},
                {in});
}

/// The weighted sum of what `top` experts made of every row: the inverse of dispatch.
Tensor combine_experts(Statement& s) {
  const Tensor in = s.input();
  s.expect_axes(in, 2, "[tokens, features]");
  const std::string name = s.name();
  const std::int64_t top = s.integer("top", 1, in.shape[0]);
  s.close();
  if (in.shape[0] % top != 0) s.refuse(fmt::format("{} rows are not {} for every token", in.shape[0], top));
  return s.emit({.name = name,
                 .kind = LayerKind::Elementwise,
                 .output = {in.shape[0] / top, in.shape[1]},
                 .forward_flops = 2.0 * count_of(in.shape),
                 .saves_input = true,
                 .routing = LayerSpec::Routing::Combine},
                {in});
}

/// Softmax cross-entropy over the last axis; one number per row comes out. A fused one makes the gradient of the logits
/// where they are.
Tensor loss(Statement& s) {
  const Tensor in = s.input();
  const std::string name = s.name();
  const bool fused = s.integer_or("fused", 0, 0, 1) == 1;
  s.close();
  Shape rows = in.shape;
  rows.back() = 1;
  return s.emit({.name = name,
                 .kind = LayerKind::Loss,
                 .output = rows,
                 .forward_flops = 5.0 * count_of(in.shape),
                 .fp32_copies = !fused},
                {in});
}

/// DLRM's dot interaction: all pairs of n vectors of d features, n (n - 1) / 2 products.
Tensor interaction(Statement& s) {
  const Tensor in = s.input();
  s.expect_axes(in, 2, "[vectors, features]");
  const std::string name = s.name();
  s.close();
  const std::int64_t vectors = in.shape[0];
  if (vectors < 2 || vectors > 100'000) s.refuse(fmt::format("expected 2 to 100000 vectors, got {}", vectors));
  // The library multiplies the whole n x n matrix and keeps its lower triangle.
  const double flops = 2.0 * static_cast<double>(vectors) * count_of(in.shape);
  return s.emit({.name = name,
                 .kind = LayerKind::Attention,
                 .output = {vectors * (vectors - 1) / 2},
                 .forward_flops = flops,
                 .backward_ratio = 2.0,
                 .operation = {.products = {{vectors, in.shape[1], vectors, false}}}},
                {in});
}

}  // namespace

const std::vector<NamedTemplate>& general_templates() {
  static const std::vector<NamedTemplate> kTemplates{
      {"relu", relu},           {"dropout", dropout},         {"gelu", gelu},
      {"tanh", transcendental}, {"sigmoid", transcendental},  {"softmax", softmax},
      {"add", combine},         {"multiply", combine},        {"concat", concat},
      {"flatten", flatten},     {"reshape", reshape},         {"slice", slice},
      {"loss", loss},           {"interaction", interaction}, {"silu", silu},
      {"dispatch", dispatch},   {"combine", combine_experts}};
  return kTemplates;
}

}  // namespace simsync::detail
