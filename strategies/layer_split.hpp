// The ways in which tensor-parallel ranks may share out one layer.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/words.hpp"

namespace simsync {

/// What a rank computes of a layer.
enum class LayerSplit : std::uint8_t {
  Whole,       ///< all of it, as every other rank: B -> B
  Columns,     ///< a dense layer's columns: B -> S(features); its input gradient is P
  Rows,        ///< a dense layer's rows: S(features) -> P
  Features,    ///< element by element, or attention head by head: S(features) -> S(features)
  Tokens,      ///< row by row: S(tokens) -> S(tokens). Sequence parallelism, and data parallelism of a single layer
  Vocabulary,  ///< rows of a table that is looked up: B -> P
};
/// Their words in files, options and messages.
const Words<LayerSplit>& layer_split_words();
const char* name_of(LayerSplit split);

/// Another split than the rule's for some layers.
struct SplitChoice {
  std::string layers;  ///< name of a layer, where `*` stands for any letters
  LayerSplit split = LayerSplit::Whole;
  friend bool operator==(const SplitChoice&, const SplitChoice&) = default;
  friend auto operator<=>(const SplitChoice&, const SplitChoice&) = default;
};
/// `fc6:columns+fc7:rows`. @throws InputError for what is no such list.
std::vector<SplitChoice> parse_split_choices(const std::string& text);
std::string text_of(const std::vector<SplitChoice>& choices);

}  // namespace simsync
