// Matrix products, their norms, and tables of embeddings.
#include <fmt/format.h>

#include <algorithm>

#include "models/templates.hpp"

namespace simsync::detail {
namespace {

/// Rows of a matrix product: all axes but the last.
double rows_of(const Shape& shape) {
  return count_of(shape) / static_cast<double>(shape.back());
}

constexpr std::int64_t kMostExperts = 4096;

LayerSpec dense_spec(const std::string& name, const Shape& in, std::int64_t out) {
  Shape output = in;
  output.back() = out;
  return {.name = name,
          .kind = LayerKind::Dense,
          .output = output,
          .forward_flops = 2.0 * count_of(in) * static_cast<double>(out),
          .dense_rows = rows_of(in),
          .operation = {.products = {{static_cast<std::int64_t>(rows_of(in)), in.back(), out}}}};
}

void expect_flat(const Statement& s, const Tensor& in) {
  if (in.shape.size() == 3)
    s.refuse(fmt::format("'{}' multiplies rows of features; flatten {} first", s.keyword(), text_of(in.shape)));
}

Tensor dense(Statement& s) {
  const Tensor in = s.input();
  expect_flat(s, in);
  const std::string name = s.name();
  const std::int64_t out = s.integer("out");
  const bool bias = s.flag_or("bias", true);
  const std::int64_t experts = s.integer_or("experts", 0, 0, kMostExperts);
  s.close();
  LayerSpec spec = dense_spec(name, in.shape, out);
  const auto add = [&](const std::string& prefix) {
    spec.variables.push_back({prefix + "weight", {out, in.shape.back()}});
    if (bias) spec.variables.push_back({prefix + "bias", {out}});
  };
  if (experts == 0) add("");
  // A row meets the matrix of one expert, so the factors of a gradient are not those of all rows.
  if (experts > 0) spec.dense_rows = 0.0;
  spec.experts = static_cast<int>(experts);
  for (std::int64_t expert = 0; expert < experts; ++expert) add(fmt::format("{}.", expert));
  return s.emit(spec, {in});
}

/// A product with a matrix that another layer owns (the embedding table as output layer); an own bias if asked.
Tensor tied_dense(Statement& s) {
  const Tensor in = s.input();
  expect_flat(s, in);
  const std::string name = s.name();
  const std::int64_t out = s.integer("out");
  const bool bias = s.flag_or("bias", false);
  s.close();
  LayerSpec spec = dense_spec(name, in.shape, out);
  spec.backward_ratio = 2.0;
  if (bias) spec.variables.push_back({"bias", {out}});
  return s.emit(spec, {in});
}

Tensor layer_norm(Statement& s) {
  const Tensor in = s.input();
  const std::string name = s.name();
  const bool bias = s.flag_or("bias", true);
  s.close();
  LayerSpec spec{.name = name, .kind = LayerKind::Norm, .output = in.shape, .forward_flops = 6.0 * count_of(in.shape)};
  spec.variables.push_back({"weight", {in.shape.back()}});
  if (bias) spec.variables.push_back({"bias", {in.shape.back()}});
  return s.emit(spec, {in});
}

/// Zhang and Sennrich 2019: a layer norm without mean and bias.
Tensor rms_norm(Statement& s) {
  const Tensor in = s.input();
  const std::string name = s.name();
  s.close();
  LayerSpec spec{.name = name, .kind = LayerKind::Norm, .output = in.shape, .forward_flops = 4.0 * count_of(in.shape)};
  spec.variables.push_back({"weight", {in.shape.back()}});
  return s.emit(spec, {in});
}

/// [tokens] to [tokens, dim]. `lookups` replaces the number of tokens when the input says nothing about it.
Tensor embedding(Statement& s) {
  const Tensor in = s.input();
  const std::string name = s.name();
  const std::int64_t rows = s.integer("rows");
  const std::int64_t dim = s.integer("dim");
  const std::int64_t lookups = s.integer_or("lookups", elements_of(in.shape).value_or(1));
  const bool sparse = s.flag_or("sparse", true);
  s.close();
  LayerSpec spec{.name = name, .kind = LayerKind::Embedding, .output = {lookups, dim}};
  spec.variables.push_back({"weight", {rows, dim}, sparse, sparse ? static_cast<double>(lookups) : 0.0});
  spec.input_bytes = 4.0 * static_cast<double>(lookups);
  spec.backward_ratio = 1.0;
  return s.emit(spec, {in});
}

/// Looks up rows of a table that another layer owns.
Tensor tied_embedding(Statement& s) {
  const Tensor in = s.input();
  const std::string name = s.name();
  const std::int64_t dim = s.integer("dim");
  s.close();
  const std::int64_t lookups = elements_of(in.shape).value_or(1);
  return s.emit({.name = name, .kind = LayerKind::Embedding, .output = {lookups, dim}}, {in});
}

/// One table per entry of `tables`, named NAME.0, NAME.1, ...; the vectors found are stacked to [sum, dim].
Tensor embedding_tables(Statement& s) {
  const Tensor in = s.input();
  const std::string name = s.name();
  const std::int64_t dim = s.integer("dim");
  const std::int64_t lookups = s.integer_or("lookups", 1);
  const bool sparse = s.flag_or("sparse", true);
  std::vector<std::int64_t> tables;
  const yaml::Node list = s.required("tables");
  for (const yaml::Node& rows : list.items()) tables.push_back(s.evaluate(rows, 1, kMaxElements));
  if (list.is_sequence() && tables.empty()) list.fail("expected at least one table");
  s.close();
  std::vector<Tensor> found;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    s.builder().count(s.node());
    LayerSpec spec{.name = fmt::format("{}.{}", name, i), .kind = LayerKind::Embedding, .output = {lookups, dim}};
    spec.variables.push_back({"weight", {tables[i], dim}, sparse, sparse ? static_cast<double>(lookups) : 0.0});
    spec.input_bytes = 4.0 * static_cast<double>(lookups);
    spec.backward_ratio = 1.0;
    found.push_back(s.emit(spec, {in}));
  }
  if (lookups > kMaxElements / static_cast<std::int64_t>(tables.size())) s.refuse("too many lookups");
  const Shape stacked{lookups * static_cast<std::int64_t>(tables.size()), dim};
  return s.emit({.name = name, .kind = LayerKind::Elementwise, .output = stacked}, found);
}

/// Adds a learned table to a sequence; `rows` when the table is longer than the sequence.
Tensor position(Statement& s) {
  const Tensor in = s.input();
  s.expect_axes(in, 2, "[tokens, features]");
  const std::string name = s.name();
  const std::int64_t rows = s.integer_or("rows", in.shape[0], in.shape[0]);
  s.close();
  LayerSpec spec{.name = name, .kind = LayerKind::Elementwise, .output = in.shape, .forward_flops = count_of(in.shape)};
  spec.variables.push_back({"weight", {rows, in.shape[1]}});
  spec.backward_ratio = 1.0;
  return s.emit(spec, {in});
}

/// A free tensor that is an input of what follows, such as a class token.
Tensor parameter(Statement& s) {
  const std::string name = s.name();
  const Shape shape = s.shape(s.required("shape"));
  s.close();
  LayerSpec spec{.name = name, .kind = LayerKind::Elementwise, .output = shape};
  spec.variables.push_back({"value", shape});
  return s.emit(spec, {});
}

/// Sampled softmax: the scores of the true word and of `sampled` words that the whole batch shares, so a step
/// touches one row per token and `sampled` rows besides.
Tensor sampled_softmax(Statement& s) {
  const Tensor in = s.input();
  s.expect_axes(in, 2, "[tokens, features]");
  const std::string name = s.name();
  const std::int64_t rows = s.integer("rows");
  const std::int64_t sampled = s.integer("sampled", 1, rows);
  s.close();
  const auto tokens = static_cast<double>(in.shape[0]);
  const double lookups = tokens + static_cast<double>(sampled) / static_cast<double>(s.builder().default_batch());
  LayerSpec spec = dense_spec(name, in.shape, sampled + 1);
  spec.dense_rows = 0.0;  // its gradient is sparse: no factors to send
  spec.variables.push_back({"weight", {rows, in.shape[1]}, true, lookups});
  spec.variables.push_back({"bias", {rows, 1}, true, lookups});
  return s.emit(spec, {in});
}

}  // namespace

const std::vector<NamedTemplate>& dense_templates() {
  static const std::vector<NamedTemplate> kTemplates{{"dense", dense},
                                                     {"tied_dense", tied_dense},
                                                     {"layer_norm", layer_norm},
                                                     {"rms_norm", rms_norm},
                                                     {"embedding", embedding},
                                                     {"tied_embedding", tied_embedding},
                                                     {"embedding_tables", embedding_tables},
                                                     {"position", position},
                                                     {"parameter", parameter},
                                                     {"sampled_softmax", sampled_softmax}};
  return kTemplates;
}

}  // namespace simsync::detail
