#include "models/statement.hpp"

#include <fmt/format.h>

namespace simsync::detail {
namespace {

constexpr std::int64_t kLargestOrder = 1'000'000;

}  // namespace

std::string Scope::full_name(const std::string& name) const {
  if (prefix.empty() || name.empty()) return prefix + name;
  return prefix + "." + name;
}

Statement::Statement(Builder& builder, const Scope& scope, const yaml::Node& node, const Tensor& current)
    : builder_(builder), scope_(scope), node_(node) {
  builder_.count(node);
  const auto entries = node.entries();
  if (node.is_mapping() && entries.empty()) node.fail("expected a layer, such as {relu: NAME}, got nothing");
  builder_.check();
  keyword_ = entries.front().first;
  keyword_value_ = entries.front().second;
  fields_.emplace(node.mapping());
  (void)fields_->optional(keyword_);
  order_ = scope.order;
  if (const yaml::Node order = fields_->optional("order")) order_ = evaluate(order, 0, kLargestOrder);
  read_inputs(current);
}

Tensor Statement::named(const yaml::Node& value) {
  builder_.count(node_);
  const std::string name = checked_name(value);
  if (name.empty()) return {{1}, {}, false};
  if (name == "input") return scope_.input;
  if (const Tensor* found = builder_.find(scope_.prefix, name)) return *found;
  value.fail(fmt::format("no earlier layer or input is called '{}'", name), did_you_mean(name, builder_.known_names()));
  return {{1}, {}, false};
}

void Statement::read_inputs(const Tensor& current) {
  const yaml::Node from = fields_->optional("from");
  if (!from) {
    inputs_.push_back(current);
  } else if (from.is_sequence()) {
    for (const yaml::Node& item : from.items()) inputs_.push_back(named(item));
    if (inputs_.empty()) from.fail("expected at least one name");
  } else {
    inputs_.push_back(named(from));
  }
  builder_.check();
}

std::string Statement::name() {
  const std::string own = checked_name(keyword_value_);
  std::string full = scope_.full_name(own);
  constexpr std::size_t kLongestFullName = 400;
  if (full.size() > kLongestFullName) keyword_value_.fail("the name with its blocks is too long");
  return full;
}

Tensor Statement::input() {
  if (inputs_.size() != 1) refuse(fmt::format("'{}' reads one tensor, got {}", keyword_, inputs_.size()));
  return inputs_.front();
}

Environment Statement::environment() const {
  Environment environment{&scope_.values, scope_.model_values, std::nullopt};
  if (!inputs_.empty()) {
    const Shape& shape = inputs_.front().shape;
    environment.in = shape.empty() ? 1 : shape[feature_axis(shape)];
  }
  return environment;
}

std::int64_t Statement::evaluate(const yaml::Node& value, std::int64_t low, std::int64_t high) const {
  return detail::evaluate(value, environment(), low, high);
}

Shape Statement::shape(const yaml::Node& value) const {
  return evaluate_shape(value, environment());
}

std::int64_t Statement::integer(const std::string& key, std::int64_t low, std::int64_t high) {
  return evaluate(fields_->require(key), low, high);
}

std::int64_t Statement::integer_or(const std::string& key, std::int64_t fallback, std::int64_t low, std::int64_t high) {
  const yaml::Node value = fields_->optional(key);
  return value ? evaluate(value, low, high) : fallback;
}

Pair Statement::pair(const std::string& key, std::int64_t low, std::optional<Pair> fallback) {
  constexpr std::int64_t kLargest = 1 << 20;
  const yaml::Node value = fallback ? fields_->optional(key) : fields_->require(key);
  if (!value) return fallback.value_or(Pair{low, low});
  if (!value.is_sequence()) {
    const std::int64_t side = evaluate(value, low, kLargest);
    return {side, side};
  }
  const auto items = value.items();
  if (items.size() == 2) return {evaluate(items[0], low, kLargest), evaluate(items[1], low, kLargest)};
  value.fail(fmt::format("expected one number or [height, width], got {} numbers", items.size()));
  return fallback.value_or(Pair{low, low});
}

bool Statement::flag_or(const std::string& key, bool fallback) {
  const yaml::Node value = fields_->optional(key);
  return value ? value.boolean() : fallback;
}

void Statement::close() {
  fields_.reset();
  builder_.check();
}

void Statement::expect_axes(const Tensor& tensor, std::size_t axes, const std::string& meaning) const {
  if (tensor.shape.size() == axes) return;
  refuse(fmt::format("'{}' needs an input of {} axes {}, got {}", keyword_, axes, meaning, text_of(tensor.shape)));
}

}  // namespace simsync::detail
