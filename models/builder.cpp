#include "models/builder.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace simsync::detail {
namespace {

constexpr double kElementBytes = 4.0;

double bytes_of(const std::vector<Tensor>& tensors) {
  double sum = 0.0;
  for (const Tensor& tensor : tensors) sum += kElementBytes * count_of(tensor.shape);
  return sum;
}

bool reads_only_the_sample(const std::vector<Tensor>& inputs) {
  return !inputs.empty() && std::all_of(inputs.begin(), inputs.end(), [](auto& t) { return t.data; });
}

/// The first layer of a network needs no gradient of the sample, which saves one of the two products.
double backward_ratio(const LayerSpec& spec, bool only_data) {
  const double ratio = spec.backward_ratio.value_or(spec.variables.empty() ? 1.0 : 2.0);
  return only_data ? std::max(ratio - 1.0, 0.0) : ratio;
}

}  // namespace

void Builder::refuse(const yaml::Node& at, const std::string& message, const std::string& help) const {
  at.fail(message, help);
  document_.finish();
  throw InputError(message, help);
}

void Builder::count(const yaml::Node& at) {
  if (++statements_ > kMaxStatements)
    refuse(at, fmt::format("the model expands to more than {} statements", kMaxStatements));
}

void Builder::define(const yaml::Node& at, const std::string& name, const Tensor& tensor) {
  if (!tensors_.emplace(name, tensor).second)
    refuse(at, fmt::format("the name '{}' is taken by an earlier layer", name));
}

const Tensor* Builder::find(const std::string& prefix, const std::string& name) const {
  std::string scope = prefix;
  while (true) {
    const auto found = tensors_.find(scope.empty() ? name : scope + "." + name);
    if (found != tensors_.end()) return &found->second;
    if (scope.empty()) return nullptr;
    const auto dot = scope.rfind('.');
    scope.resize(dot == std::string::npos ? 0 : dot);
  }
}

std::vector<std::string> Builder::known_names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

Tensor Builder::emit(const yaml::Node& at, const LayerSpec& spec, const std::vector<Tensor>& inputs,
                     std::int64_t order) {
  if (model_.layer_count() >= kMaxLayers) refuse(at, fmt::format("the model has more than {} layers", kMaxLayers));
  if (!elements_of(spec.output))
    refuse(at, fmt::format("the output {} of '{}' is larger than {} elements", text_of(spec.output), spec.name,
                           kMaxElements));
  std::vector<LayerId> producers;
  for (const Tensor& input : inputs) producers.insert(producers.end(), input.producers.begin(), input.producers.end());
  std::sort(producers.begin(), producers.end());
  producers.erase(std::unique(producers.begin(), producers.end()), producers.end());

  const bool only_data = reads_only_the_sample(inputs);
  Layer layer;
  layer.name = spec.name;
  layer.kind = spec.kind;
  layer.forward_flops = Flops{spec.forward_flops};
  layer.backward_flops = Flops{spec.forward_flops * backward_ratio(spec, only_data)};
  layer.input_bytes = spec.input_bytes.value_or(bytes_of(inputs));
  layer.output_bytes = spec.output_bytes.value_or(kElementBytes * count_of(spec.output));
  layer.dense_rows = spec.dense_rows;
  layer.saves_input = spec.saves_input.value_or(saves_input(spec.kind));
  layer.saves_output = spec.saves_output || spec.kind == LayerKind::Recurrent;
  layer.mask_bytes = spec.mask_bytes;
  layer.fp32_copies = spec.fp32_copies;
  layer.experts = spec.experts;
  const bool routed = std::any_of(inputs.begin(), inputs.end(), [](const Tensor& input) { return input.routed; });
  expect_routed_alike(at, spec, inputs);
  layer.at_experts = spec.experts > 0 || (routed && spec.routing == LayerSpec::Routing::None);
  layer.operation = spec.operation;
  layer.operation.data_gradient = !only_data;
  const bool leaves_routed = layer.at_experts || spec.routing == LayerSpec::Routing::Dispatch;
  const LayerId id = model_.add_layer(std::move(layer), producers);
  add_variables(at, spec, id, order);
  Tensor output{.shape = spec.output, .producers = {id}, .data = false, .routed = leaves_routed};
  define(at, spec.name, output);
  return output;
}

void Builder::expect_routed_alike(const yaml::Node& at, const LayerSpec& spec,
                                  const std::vector<Tensor>& inputs) const {
  const auto routed = std::count_if(inputs.begin(), inputs.end(), [](const Tensor& input) { return input.routed; });
  if (spec.experts > 0 && routed == 0)
    refuse(at, fmt::format("'{}' has experts, and no 'dispatch' has sent them the rows that it reads", spec.name));
  if (spec.routing == LayerSpec::Routing::Combine && routed == 0)
    refuse(at, fmt::format("'{}' combines rows that no 'dispatch' has sent to experts", spec.name));
  if (spec.routing == LayerSpec::Routing::Combine) return;
  if (routed > 0 && (routed < static_cast<std::ptrdiff_t>(inputs.size()) || spec.kind == LayerKind::Loss ||
                     spec.routing == LayerSpec::Routing::Dispatch))
    refuse(at, fmt::format("'{}' reads rows that are still with experts: a 'combine' takes them back", spec.name));
}

void Builder::add_variables(const yaml::Node& at, const LayerSpec& spec, LayerId layer, std::int64_t order) {
  for (const VariableSpec& variable : spec.variables) {
    const auto elements = elements_of(variable.shape);
    if (!elements) {
      refuse(at, fmt::format("variable '{}/{}' of shape {} is larger than {} elements", spec.name, variable.name,
                             text_of(variable.shape), kMaxElements));
    }
    parameters_ += *elements;
    if (parameters_ > kMaxParameters) refuse(at, fmt::format("the model has more than {} parameters", kMaxParameters));
    variables_.emplace_back(order, Variable{.name = spec.name + "/" + variable.name,
                                            .shape = variable.shape,
                                            .dtype = DType::Float32,
                                            .layer = layer,
                                            .sparse = variable.sparse,
                                            .lookups_per_sample = variable.lookups});
  }
}

Model Builder::finish() {
  check();
  std::stable_sort(variables_.begin(), variables_.end(), [](auto& a, auto& b) { return a.first < b.first; });
  for (auto& [order, variable] : variables_) model_.add_variable(std::move(variable));
  variables_.clear();
  return std::move(model_);
}

}  // namespace simsync::detail
