// Assembles a Model layer by layer: derives bytes and backward work, checks names and limits.
#pragma once
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/yaml.hpp"
#include "models/model.hpp"
#include "models/shape.hpp"

namespace simsync::detail {

/// What flows between layers.
struct Tensor {
  Shape shape;
  std::vector<LayerId> producers;  ///< empty for the sample itself
  bool data = false;               ///< the sample itself: nobody asks for its gradient
  bool routed = false;             ///< its rows are on their way to experts, with them, or on their way back
};

struct VariableSpec {
  std::string name;  ///< within the layer: `weight`
  Shape shape;
  bool sparse = false;
  double lookups = 0.0;
};

/// A layer as a template describes it; `Builder::emit` derives the rest.
struct LayerSpec {
  std::string name = {};
  LayerKind kind = LayerKind::Elementwise;
  Shape output = {};
  double forward_flops = 0.0;
  std::vector<VariableSpec> variables = {};
  double dense_rows = 0.0;
  /// Backward work as a multiple of forward: 2 where a second operand needs a gradient too (weights, the other
  /// matrix of attention), 1 otherwise. Unset: 2 with variables, 1 without.
  std::optional<double> backward_ratio = {};
  std::optional<double> input_bytes = {};   ///< unset: the inputs' elements, four bytes each
  std::optional<double> output_bytes = {};  ///< unset: the output's elements, four bytes each
  Operation operation = {};
  std::optional<bool> saves_input = {};  ///< unset: as its kind says
  bool saves_output = false;
  double mask_bytes = 0.0;
  bool fp32_copies = false;
  int experts = 0;
  /// What it does to rows of a mixture of experts: sends them to experts, or takes them back.
  enum class Routing { None, Dispatch, Combine } routing = Routing::None;
};

class Builder {
public:
  Builder(Model model, const yaml::Document& document) : model_(std::move(model)), document_(document) {}

  /// Adds the layer that `at` describes. Its variables are registered after all variables of lower `order`.
  Tensor emit(const yaml::Node& at, const LayerSpec& spec, const std::vector<Tensor>& inputs, std::int64_t order);
  /// Gives a tensor a name that `from` can use. @throws InputError when the name is taken.
  void define(const yaml::Node& at, const std::string& name, const Tensor& tensor);
  /// The tensor that `name` means inside `prefix`: the innermost enclosing block that has it wins.
  [[nodiscard]] const Tensor* find(const std::string& prefix, const std::string& name) const;
  [[nodiscard]] std::vector<std::string> known_names() const;
  /// Counts one statement or reference. @throws InputError above kMaxStatements.
  void count(const yaml::Node& at);
  /// @throws InputError when anything was noted.
  void check() const { document_.finish(); }
  /// Notes an error and throws: what follows would only repeat it.
  [[noreturn]] void refuse(const yaml::Node& at, const std::string& message, const std::string& help = {}) const;
  [[nodiscard]] std::int64_t default_batch() const { return model_.default_batch(); }

  [[nodiscard]] std::size_t layer_count() const { return model_.layer_count(); }

  /// The finished model; the builder is empty afterwards. @throws InputError when anything was noted.
  Model finish();

private:
  void add_variables(const yaml::Node& at, const LayerSpec& spec, LayerId layer, std::int64_t order);
  /// Rows that are with experts are read by themselves, and nobody else has experts.
  void expect_routed_alike(const yaml::Node& at, const LayerSpec& spec, const std::vector<Tensor>& inputs) const;

  Model model_;
  const yaml::Document& document_;
  std::unordered_map<std::string, Tensor> tensors_;
  std::vector<std::pair<std::int64_t, Variable>> variables_;  ///< with their registration order
  std::int64_t parameters_ = 0;
  std::size_t statements_ = 0;
};

}  // namespace simsync::detail
