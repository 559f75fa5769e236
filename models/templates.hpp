// Layer templates: how each keyword of a model file turns fields and input shapes into layers.
#pragma once
#include <string>
#include <vector>

#include "models/statement.hpp"

namespace simsync::detail {

/// Reads the statement's fields and adds its layers; returns the output.
using Template = Tensor (*)(Statement&);

struct NamedTemplate {
  const char* keyword;
  Template apply;
};

/// conv, batch_norm, max_pool, avg_pool, adaptive_pool
const std::vector<NamedTemplate>& image_templates();
/// relu, gelu, silu, tanh, sigmoid, softmax, dropout, add, multiply, concat, flatten, reshape, slice, loss,
/// interaction, dispatch, combine
const std::vector<NamedTemplate>& general_templates();
/// dense, tied_dense, layer_norm, rms_norm, embedding, tied_embedding, embedding_tables, position, parameter,
/// sampled_softmax
const std::vector<NamedTemplate>& dense_templates();
/// attention, rotary, additive_attention, lstm
const std::vector<NamedTemplate>& sequence_templates();
/// layer: everything given in numbers
const std::vector<NamedTemplate>& explicit_templates();

/// The template of `keyword`, or null.
Template find_template(const std::string& keyword);
std::vector<std::string> template_keywords();

}  // namespace simsync::detail
