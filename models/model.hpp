// The network being trained: layers, their order and their trainable tensors.
#pragma once
#include <boost/graph/adjacency_list.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "models/operation.hpp"

namespace simsync {

enum class DType { Float32, Float16, BFloat16 };
/// Bytes of one element.
std::int64_t size_of(DType dtype);
const char* name_of(DType dtype);

using LayerId = std::size_t;
using VariableId = std::size_t;

/// One trainable tensor.
struct Variable {
  std::string name;                 ///< unique in the model, `layer/weight`
  std::vector<std::int64_t> shape;  ///< every axis at least 1; a scalar has no axis
  DType dtype = DType::Float32;
  LayerId layer = 0;
  /// An embedding table of which a step touches only some rows; its gradient is (row, values) pairs.
  bool sparse = false;
  /// Rows looked up per sample (with repetition); only for a sparse variable.
  double lookups_per_sample = 0.0;

  [[nodiscard]] std::int64_t elements() const;
  [[nodiscard]] Bytes bytes() const { return {elements() * size_of(dtype)}; }
};

enum class LayerKind { Conv, Dense, Embedding, Norm, Activation, Pool, Attention, Recurrent, Elementwise, Loss };
const char* name_of(LayerKind kind);
/// Whether the backward pass of such a layer reads what it read, unless its template says otherwise.
bool saves_input(LayerKind kind);

/// One layer: what it costs for one sample and which variables it owns. Amounts do not depend on the batch
/// unless said; a device turns them into seconds.
struct Layer {
  std::string name;  ///< unique in the model
  LayerKind kind = LayerKind::Elementwise;
  std::vector<VariableId> variables;  ///< in registration order: weight, bias, ...
  Flops forward_flops;                ///< per sample; a multiply-add counts as two
  Flops backward_flops;               ///< per sample; data gradient and weight gradient together
  double input_bytes = 0.0;           ///< activation bytes read per sample (32-bit elements)
  double output_bytes = 0.0;          ///< activation bytes written per sample (32-bit elements)
  /// Rows that a dense layer multiplies per sample (sequence length for a Transformer, 1 for a classifier);
  /// a sufficient-factor exchange moves this many rows of both factors. For a recurrent layer the steps that
  /// follow one another. 0 for every other kind.
  double dense_rows = 0.0;
  /// What the backward pass reads again.
  bool saves_input = false;
  bool saves_output = false;
  /// Of a mixture of experts: whether its rows lie with the experts that they were sent to, and how many experts it has
  /// a matrix of (dense layers).
  bool at_experts = false;
  int experts = 0;
  bool fp32_copies = false;  ///< of a loss: what it reads, its logarithms and its gradient, besides the input itself
  double mask_bytes = 0.0;   ///< per sample, in any precision: which elements a dropout lets through
  /// The products that it consists of; none for a layer given in numbers.
  Operation operation;
};

/// A model: layers in execution order on a Boost graph whose edges are data dependences.
///
/// Invariants: every edge leads from an earlier layer to a later one, so the graph is acyclic, and every variable
/// belongs to exactly one layer (asserted when they are added); names are unique (the reader refuses others).
class Model {
public:
  using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, Layer>;

  Model(std::string name, std::int64_t default_batch, std::string sample_unit);

  /// Adds a layer that reads the outputs of `inputs` (earlier layers); returns its id.
  LayerId add_layer(Layer layer, const std::vector<LayerId>& inputs);
  /// Adds a variable to an existing layer; returns its id.
  VariableId add_variable(Variable variable);

  [[nodiscard]] const std::string& name() const { return name_; }
  /// Per-device batch used when the user gives none.
  [[nodiscard]] std::int64_t default_batch() const { return default_batch_; }
  [[nodiscard]] const std::string& sample_unit() const { return sample_unit_; }
  [[nodiscard]] std::size_t layer_count() const { return boost::num_vertices(graph_); }
  [[nodiscard]] const Layer& layer(LayerId id) const { return graph_[id]; }
  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] const std::vector<Variable>& variables() const { return variables_; }  ///< registration order
  [[nodiscard]] const Variable& variable(VariableId id) const { return variables_.at(id); }

  [[nodiscard]] std::int64_t parameter_count() const;  ///< trainable elements
  [[nodiscard]] Bytes parameter_bytes() const;
  [[nodiscard]] Flops forward_flops() const;  ///< per sample
  /// The first layer of which neither a time nor its ratio to another device's can be estimated: a product without
  /// operations, or variables without operations and output. Models of traces consist of such layers.
  [[nodiscard]] std::optional<LayerId> layer_of_unknown_work() const;
  /// Path of the profile that the model's file names; empty when it names none.
  [[nodiscard]] const std::string& profile() const { return profile_; }
  void set_profile(std::string path) { profile_ = std::move(path); }
  /// The parameters of its file that were set otherwise, `length=512`; empty when none was.
  [[nodiscard]] const std::string& variant() const { return variant_; }
  void set_variant(std::string parameters) { variant_ = std::move(parameters); }
  /// Variables whose gradients are final once backward of a layer has ended, in the order in which backward
  /// produces them: layers from last to first, within a layer in reverse registration order.
  [[nodiscard]] std::vector<VariableId> backward_order() const;

  /// A smaller (or larger) stand-in of the same layers: the longest axis of every variable, and the rows that are
  /// looked up in a sparse one, times `factor`; axes become the closest length that partitioners cut into as many
  /// shards (closest_length_cut_like). What layers compute stays.
  [[nodiscard]] Model with_scaled_variables(double factor) const;

private:
  std::string name_;
  std::int64_t default_batch_;
  std::string sample_unit_;
  std::string profile_;
  std::string variant_;
  Graph graph_;
  std::vector<Variable> variables_;
};

}  // namespace simsync
