// A layer given in numbers: `{layer: fc, kind: dense, parameters: [[1000, 64]], forward_flops: 128KFLOP, ...}`.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/parse_units.hpp"
#include "models/templates.hpp"

namespace simsync::detail {
namespace {

constexpr double kMostFlops = 1e18;
constexpr double kMostBytes = 1e15;

const std::vector<std::pair<std::string, LayerKind>>& kinds() {
  static const auto kKinds = [] {
    std::vector<std::pair<std::string, LayerKind>> all;
    for (const LayerKind kind :
         {LayerKind::Conv, LayerKind::Dense, LayerKind::Embedding, LayerKind::Norm, LayerKind::Activation,
          LayerKind::Pool, LayerKind::Attention, LayerKind::Recurrent, LayerKind::Elementwise, LayerKind::Loss}) {
      all.emplace_back(name_of(kind), kind);
    }
    return all;
  }();
  return kKinds;
}

/// `2.5GFLOP`: a number and FLOP with an optional prefix of 1000; `0` needs no unit.
std::optional<double> parse_flops(const std::string& text) {
  static const std::array<std::pair<const char*, double>, 5> kUnits{
      {{"TFLOP", 1e12}, {"GFLOP", 1e9}, {"MFLOP", 1e6}, {"KFLOP", 1e3}, {"FLOP", 1.0}}};
  if (text == "0") return 0.0;
  for (const auto& [unit, scale] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const auto number = parse_number(text.substr(0, text.size() - std::string(unit).size()));
    return number ? std::optional{*number * scale} : std::nullopt;
  }
  return std::nullopt;
}

double flops(const yaml::Node& value) {
  if (!value) return 0.0;
  const std::string text = value.text();
  if (text.empty()) return 0.0;
  const auto parsed = parse_flops(text);
  if (!parsed) {
    value.fail(fmt::format("expected an amount of work with its unit, such as 2.5GFLOP, got '{}'", text.substr(0, 60)));
    return 0.0;
  }
  if (*parsed >= 0.0 && *parsed <= kMostFlops) return *parsed;
  value.fail(fmt::format("{} is out of range: expected 0 to {}TFLOP", text.substr(0, 60), kMostFlops / 1e12));
  return 0.0;
}

double bytes(const yaml::Node& value) {
  return static_cast<double>(value.bytes({0.0, kMostBytes}).count);
}

/// A list of shapes (named weight, bias, parameter2, ...) or a mapping from names to shapes.
std::vector<VariableSpec> parameters(Statement& s, const yaml::Node& value) {
  static const std::array<const char*, 2> kNames{"weight", "bias"};
  std::vector<VariableSpec> variables;
  if (value.is_mapping()) {
    for (const auto& [name, shape] : value.entries()) {
      s.builder().count(s.node());
      if (name.empty() || name.size() > 100) shape.fail("expected a name of 1 to 100 characters");
      variables.push_back({name, s.shape(shape)});
    }
    return variables;
  }
  for (const yaml::Node& shape : value.items()) {
    s.builder().count(s.node());
    const std::size_t index = variables.size();
    variables.push_back({index < kNames.size() ? kNames[index] : fmt::format("parameter{}", index), s.shape(shape)});
  }
  return variables;
}

void read_sparse(Statement& s, LayerSpec& spec) {
  const bool sparse = s.flag_or("sparse", false);
  const yaml::Node lookups = s.field("lookups");
  if (lookups && !sparse) lookups.fail("only a layer with 'sparse: true' has lookups");
  if (!sparse) return;
  if (!lookups) (void)s.required("lookups");
  const auto rows = static_cast<double>(s.evaluate(lookups, 1, kMaxElements));
  for (VariableSpec& variable : spec.variables) {
    variable.sparse = true;
    variable.lookups = rows;
  }
}

/// The user's own layer. Its input bytes are those of its inputs unless `input_bytes` says otherwise; its output
/// has the shape `output` when templates follow, else as many elements as `output_bytes` holds.
Tensor layer(Statement& s) {
  std::vector<Tensor> inputs = s.inputs();
  LayerSpec spec{.name = s.name()};
  spec.kind = s.required("kind").one_of(kinds());
  spec.variables = parameters(s, s.field("parameters"));
  read_sparse(s, spec);
  spec.forward_flops = flops(s.required("forward_flops"));
  if (const yaml::Node value = s.field("backward_flops")) {
    const double backward = flops(value);
    if (spec.forward_flops > 0.0) {
      spec.backward_ratio = backward / spec.forward_flops;
      for (Tensor& input : inputs) input.data = false;  // the user's number is final
    } else if (backward > 0.0) {
      value.fail("a layer without forward work has no backward work");
    }
  }
  if (const yaml::Node value = s.field("input_bytes")) spec.input_bytes = bytes(value);
  const yaml::Node shape = s.field("output");
  const yaml::Node size = shape ? s.field("output_bytes") : s.required("output_bytes");
  if (size) spec.output_bytes = bytes(size);
  spec.output =
      shape ? s.shape(shape) : Shape{std::max<std::int64_t>(std::llround(spec.output_bytes.value_or(4.0) / 4.0), 1)};
  spec.dense_rows = static_cast<double>(s.integer_or("rows", spec.kind == LayerKind::Dense ? 1 : 0, 0));
  spec.fp32_copies = spec.kind == LayerKind::Loss;
  s.close();
  return s.emit(spec, inputs);
}

}  // namespace

const std::vector<NamedTemplate>& explicit_templates() {
  static const std::vector<NamedTemplate> kTemplates{{"layer", layer}};
  return kTemplates;
}

}  // namespace simsync::detail
