#include "models/model.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/divisors.hpp"
#include "base/error.hpp"

namespace simsync {

std::int64_t size_of(DType dtype) {
  return dtype == DType::Float32 ? 4 : 2;
}

const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return "float32";
    case DType::Float16:
      return "float16";
    case DType::BFloat16:
      return "bfloat16";
  }
  return "unknown";
}

bool saves_input(LayerKind kind) {
  switch (kind) {
    case LayerKind::Conv:
    case LayerKind::Dense:
    case LayerKind::Norm:
    case LayerKind::Pool:
    case LayerKind::Attention:
    case LayerKind::Recurrent:
    case LayerKind::Loss:
      return true;
    case LayerKind::Embedding:
    case LayerKind::Activation:
    case LayerKind::Elementwise:
      return false;
  }
  return false;
}

const char* name_of(LayerKind kind) {
  switch (kind) {
    case LayerKind::Conv:
      return "conv";
    case LayerKind::Dense:
      return "dense";
    case LayerKind::Embedding:
      return "embedding";
    case LayerKind::Norm:
      return "norm";
    case LayerKind::Activation:
      return "activation";
    case LayerKind::Pool:
      return "pool";
    case LayerKind::Attention:
      return "attention";
    case LayerKind::Recurrent:
      return "recurrent";
    case LayerKind::Elementwise:
      return "elementwise";
    case LayerKind::Loss:
      return "loss";
  }
  return "unknown";
}

std::int64_t Variable::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t axis : shape) product *= axis;
  return product;
}

Model::Model(std::string name, std::int64_t default_batch, std::string sample_unit)
    : name_(std::move(name)), default_batch_(default_batch), sample_unit_(std::move(sample_unit)) {
  SIMSYNC_ASSERT(default_batch_ >= 1);
}

LayerId Model::add_layer(Layer layer, const std::vector<LayerId>& inputs) {
  SIMSYNC_ASSERT(layer.variables.empty());
  const LayerId id = boost::add_vertex(graph_);
  graph_[id] = std::move(layer);
  for (const LayerId input : inputs) {
    SIMSYNC_ASSERT(input < id);
    boost::add_edge(input, id, graph_);
  }
  return id;
}

VariableId Model::add_variable(Variable variable) {
  SIMSYNC_ASSERT(variable.layer < layer_count());
  SIMSYNC_ASSERT(std::all_of(variable.shape.begin(), variable.shape.end(), [](auto axis) { return axis >= 1; }));
  const VariableId id = variables_.size();
  graph_[variable.layer].variables.push_back(id);
  variables_.push_back(std::move(variable));
  return id;
}

std::int64_t Model::parameter_count() const {
  std::int64_t sum = 0;
  for (const Variable& variable : variables_) sum += variable.elements();
  return sum;
}

Bytes Model::parameter_bytes() const {
  Bytes sum;
  for (const Variable& variable : variables_) sum += variable.bytes();
  return sum;
}

Flops Model::forward_flops() const {
  Flops sum;
  for (LayerId id = 0; id < layer_count(); ++id) sum += graph_[id].forward_flops;
  return sum;
}

std::optional<LayerId> Model::layer_of_unknown_work() const {
  const auto is_product = [](LayerKind kind) {
    return kind == LayerKind::Conv || kind == LayerKind::Dense || kind == LayerKind::Attention ||
           kind == LayerKind::Recurrent;
  };
  for (LayerId id = 0; id < layer_count(); ++id) {
    const Layer& layer = graph_[id];
    if (layer.forward_flops.value() > 0.0) continue;
    if (is_product(layer.kind) || (!layer.variables.empty() && layer.output_bytes <= 0.0)) return id;
  }
  return std::nullopt;
}

std::vector<VariableId> Model::backward_order() const {
  std::vector<VariableId> order;
  order.reserve(variables_.size());
  for (LayerId id = layer_count(); id-- > 0;) {
    const auto& own = graph_[id].variables;
    order.insert(order.end(), own.rbegin(), own.rend());
  }
  return order;
}

Model Model::with_scaled_variables(double factor) const {
  Model out = *this;
  for (Variable& variable : out.variables_) {
    const auto longest = std::max_element(variable.shape.begin(), variable.shape.end());
    if (longest != variable.shape.end())
      *longest = closest_length_cut_like(*longest, factor * static_cast<double>(*longest));
    variable.lookups_per_sample *= factor;
  }
  return out;
}

}  // namespace simsync
