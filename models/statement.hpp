// One layer statement of a model file, `{conv: conv1, out: 64, kernel: 7}`, as its template sees it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/yaml.hpp"
#include "models/builder.hpp"
#include "models/evaluate.hpp"

namespace simsync::detail {

/// Where a statement stands: names are prefixed by the enclosing blocks, `$names` come from the innermost
/// block's parameters and from the model's.
struct Scope {
  std::string prefix;
  const Values* model_values = nullptr;
  Values values;
  Tensor input;            ///< what `from: input` means here
  std::int64_t order = 0;  ///< registration order of variables
  int depth = 0;

  /// `name` inside this scope: `layer1.0` and `conv1` give `layer1.0.conv1`.
  [[nodiscard]] std::string full_name(const std::string& name) const;
};

struct Pair {
  std::int64_t height = 0;
  std::int64_t width = 0;
};

/// Reads fields strictly; a wrong value is noted and replaced by a harmless one. After `close` every value and
/// key is known to be right, so a template reads all its fields first, closes, and then computes.
class Statement {
public:
  Statement(Builder& builder, const Scope& scope, const yaml::Node& node, const Tensor& current);

  /// The template's keyword: the first key of the statement.
  [[nodiscard]] const std::string& keyword() const { return keyword_; }
  [[nodiscard]] const yaml::Node& node() const { return node_; }
  [[nodiscard]] const Scope& scope() const { return scope_; }
  [[nodiscard]] Builder& builder() const { return builder_; }
  [[nodiscard]] std::int64_t order() const { return order_; }
  yaml::Node field(const std::string& key) { return fields_->optional(key); }
  yaml::Node required(const std::string& key) { return fields_->require(key); }

  /// The statement's full name: the value of its keyword.
  std::string name();
  /// The single tensor that it reads: `from`, else the output of the statement before.
  Tensor input();
  /// All tensors of `from`, else the output of the statement before.
  const std::vector<Tensor>& inputs() { return inputs_; }

  std::int64_t evaluate(const yaml::Node& value, std::int64_t low, std::int64_t high) const;
  std::int64_t integer(const std::string& key, std::int64_t low = 1, std::int64_t high = kMaxElements);
  std::int64_t integer_or(const std::string& key, std::int64_t fallback, std::int64_t low = 1,
                          std::int64_t high = kMaxElements);
  /// `3` or `[1, 7]` (height, width).
  Pair pair(const std::string& key, std::int64_t low, std::optional<Pair> fallback = std::nullopt);
  Shape shape(const yaml::Node& value) const;
  bool flag_or(const std::string& key, bool fallback);

  /// Refuses keys that nobody asked for and whatever was noted. @throws InputError
  void close();
  /// @throws InputError at the statement.
  [[noreturn]] void refuse(const std::string& message) const { builder_.refuse(node_, message); }
  /// Refuses an input that has another number of axes than `axes`.
  void expect_axes(const Tensor& tensor, std::size_t axes, const std::string& meaning) const;

  Tensor emit(const LayerSpec& spec, const std::vector<Tensor>& inputs) const {
    return builder_.emit(node_, spec, inputs, order_);
  }

private:
  [[nodiscard]] Environment environment() const;
  void read_inputs(const Tensor& current);
  Tensor named(const yaml::Node& value);

  Builder& builder_;
  const Scope& scope_;
  yaml::Node node_;
  std::string keyword_;
  yaml::Node keyword_value_;
  std::optional<yaml::Mapping> fields_;
  std::vector<Tensor> inputs_;
  std::int64_t order_ = 0;
};

}  // namespace simsync::detail
