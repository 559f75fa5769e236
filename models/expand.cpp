#include "models/expand.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/templates.hpp"

namespace simsync::detail {
namespace {

std::vector<std::string> names_of(const std::map<std::string, Block>& blocks) {
  std::vector<std::string> names;
  for (const auto& [name, block] : blocks) names.push_back(name);
  return names;
}

/// Evaluates `with: {planes: 64}`; every parameter of the block must be given.
Values read_arguments(Statement& s, const std::string& name, const Block& block) {
  Values values;
  const yaml::Node with = s.field("with");
  if (!with) {
    if (!block.parameters.empty())
      s.node().fail(fmt::format("block '{}' needs 'with: {{{}: ...}}'", name, fmt::join(block.parameters, ": ..., ")));
    return values;
  }
  auto fields = with.mapping();
  for (const std::string& parameter : block.parameters) {
    values[parameter] = s.evaluate(fields.require(parameter), -kMaxElements, kMaxElements);
  }
  return values;
}

Block read_block(const yaml::Node& node) {
  Block block;
  block.node = node;
  auto fields = node.mapping();
  if (const yaml::Node parameters = fields.optional("parameters")) {
    for (const yaml::Node& item : parameters.items()) block.parameters.push_back(checked_name(item));
  }
  const yaml::Node layers = fields.require("layers");
  block.layers = layers.items();
  if (layers.is_sequence() && block.layers.empty()) layers.fail("expected at least one layer");
  return block;
}

}  // namespace

std::map<std::string, Block> read_blocks(const yaml::Node& node) {
  std::map<std::string, Block> blocks;
  for (const auto& [name, value] : node.entries()) blocks.emplace(name, read_block(value));
  return blocks;
}

Tensor Expander::run(const std::vector<yaml::Node>& statements, const Scope& scope) {
  Tensor current = scope.input;
  for (const yaml::Node& node : statements) current = statement(node, scope, current);
  return current;
}

Tensor Expander::statement(const yaml::Node& node, const Scope& scope, const Tensor& current) {
  Statement s(builder_, scope, node, current);
  if (s.keyword() == "use") return use(s);
  if (s.keyword() == "branches") return branches(s);
  if (const Template apply = find_template(s.keyword())) return apply(s);
  auto known = template_keywords();
  known.insert(known.end(), {"use", "branches"});
  std::sort(known.begin(), known.end());
  std::string help = did_you_mean(s.keyword(), known);
  if (help.empty()) help = fmt::format("the first key of a statement is one of {}", fmt::join(known, ", "));
  builder_.refuse(node, fmt::format("unknown layer type '{}'", s.keyword().substr(0, 60)), help);
}

Scope Expander::nested(const Statement& s, const Tensor& input) const {
  if (s.scope().depth + 1 > kMaxNesting)
    s.refuse(fmt::format("blocks and branches are nested more than {} deep; a block must not use itself", kMaxNesting));
  Scope inner = s.scope();
  inner.input = input;
  inner.order = s.order();
  inner.depth += 1;
  return inner;
}

Tensor Expander::use(Statement& s) {
  const yaml::Node keyword = s.field("use");
  const std::string name = keyword.text();
  const auto found = blocks_.find(name);
  if (found == blocks_.end())
    builder_.refuse(keyword, fmt::format("no block is called '{}'", name.substr(0, 60)),
                    did_you_mean(name, names_of(blocks_)));
  Block& block = found->second;
  block.used = true;
  Tensor current = s.input();
  std::string prefix = s.scope().prefix;
  if (const yaml::Node own = s.field("name")) prefix = s.scope().full_name(checked_name(own));
  const yaml::Node repeat = s.field("repeat");
  const std::int64_t times = repeat ? s.evaluate(repeat, 0, static_cast<std::int64_t>(kMaxLayers)) : 1;
  const std::int64_t first = s.integer_or("first", 0, 0, static_cast<std::int64_t>(kMaxLayers));
  const bool wanted = s.integer_or("when", 1, 0, 1) == 1;
  const Values values = read_arguments(s, name, block);
  const bool named = prefix != s.scope().prefix;
  s.close();
  for (std::int64_t i = 0; wanted && i < times; ++i) {
    builder_.count(s.node());
    Scope inner = nested(s, current);
    inner.values = values;
    inner.prefix = repeat ? (prefix.empty() ? "" : prefix + ".") + std::to_string(first + i) : prefix;
    current = run(block.layers, inner);
    if (named || repeat) builder_.define(s.node(), inner.prefix, current);
  }
  if (named && repeat && builder_.find("", prefix) == nullptr) builder_.define(s.node(), prefix, current);
  return current;
}

Tensor Expander::branches(Statement& s) {
  const Tensor input = s.input();
  const std::string name = s.name();
  const std::vector<std::pair<std::string, bool>> merges{{"add", true}, {"concat", false}};
  const bool add = s.required("merge").one_of(merges);
  const auto paths = s.required("paths").items();
  const auto last_axis = static_cast<std::int64_t>(std::max<std::size_t>(input.shape.size(), 1)) - 1;
  const yaml::Node axis_field = s.field("axis");
  const std::int64_t axis = axis_field ? s.evaluate(axis_field, 0, last_axis) : -1;
  if (axis_field && add) axis_field.fail("only 'merge: concat' has an axis");
  s.close();
  if (paths.size() < 2) s.refuse(fmt::format("'branches' needs at least 2 paths, got {}", paths.size()));
  std::vector<Tensor> outputs;
  for (const yaml::Node& path : paths) {
    const auto statements = path.items();
    builder_.check();
    outputs.push_back(run(statements, nested(s, input)));
  }
  LayerSpec spec{.name = name, .kind = LayerKind::Elementwise, .output = outputs.front().shape};
  const std::size_t joined = axis < 0 ? feature_axis(spec.output) : static_cast<std::size_t>(axis);
  for (std::size_t i = 1; i < outputs.size(); ++i) {
    Shape rest = outputs[i].shape;
    const bool joinable = rest.size() == spec.output.size() && joined < rest.size();
    const std::int64_t extra = joinable ? rest[joined] : 0;
    if (!add && joinable) rest[joined] = spec.output[joined];
    if (rest != spec.output)
      s.refuse(fmt::format("path {} gives {}, which does not {} {}", i, text_of(outputs[i].shape),
                           add ? "add to" : "join", text_of(spec.output)));
    if (!add) spec.output[joined] += extra;
  }
  spec.forward_flops = add ? static_cast<double>(outputs.size() - 1) * count_of(spec.output) : 0.0;
  return s.emit(spec, outputs);
}

}  // namespace simsync::detail
