#include "models/blocks.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace simsync {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// Queries times keys: what a softmax reads.
bool gives_scores(const Model& model, LayerId id) {
  const auto [begin, end] = boost::adjacent_vertices(id, model.graph());
  return model.layer(id).kind == LayerKind::Attention &&
         std::any_of(begin, end, [&](LayerId next) { return model.layer(next).kind == LayerKind::Activation; });
}

bool is_dear(const Model& model, LayerId id) {
  switch (model.layer(id).kind) {
    case LayerKind::Conv:
    case LayerKind::Dense:
    case LayerKind::Recurrent:
      return true;
    case LayerKind::Attention:
      return !gives_scores(model, id);
    case LayerKind::Embedding:
    case LayerKind::Norm:
    case LayerKind::Activation:
    case LayerKind::Pool:
    case LayerKind::Elementwise:
    case LayerKind::Loss:
      return false;
  }
  return false;
}

}  // namespace

std::string block_of(const std::string& layer) {
  constexpr const char* kSeparators = "./";
  for (std::size_t begin = 0; begin < layer.size();) {
    const std::size_t end = std::min(layer.find_first_of(kSeparators, begin), layer.size());
    if (is_number(std::string_view(layer).substr(begin, end - begin))) return layer.substr(0, end);
    begin = end + 1;
  }
  return {};
}

std::vector<Block> blocks_of(const Model& model) {
  std::vector<Block> out;
  for (LayerId id = 0; id < model.layer_count(); ++id) {
    const std::string name = block_of(model.layer(id).name);
    if (name.empty()) continue;
    if (!out.empty() && out.back().last + 1 == id && out.back().name == name) {
      out.back().last = id;
    } else {
      out.push_back({.name = name, .first = id, .last = id});
    }
  }
  return out;
}

const char* name_of(Recompute recompute) {
  switch (recompute) {
    case Recompute::None:
      return "none";
    case Recompute::Selective:
      return "selective";
    case Recompute::SelectiveOp:
      return "selective-op";
    case Recompute::Full:
      return "full";
  }
  return "?";
}

std::vector<bool> recomputed_layers(const Model& model, Recompute recompute) {
  std::vector<bool> by_layer(model.layer_count(), false);
  if (recompute == Recompute::None) return by_layer;
  for (const Block& block : blocks_of(model)) {
    int products = 0;
    for (LayerId id = block.first; id <= block.last; ++id) {
      const bool second = model.layer(id).kind == LayerKind::Dense && ++products % 2 == 0;
      by_layer[id] =
          recompute == Recompute::Full || !is_dear(model, id) || (second && recompute == Recompute::SelectiveOp);
    }
  }
  return by_layer;
}

}  // namespace simsync
