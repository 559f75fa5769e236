#include "strategies/layer_split.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"

namespace simsync {

const Words<LayerSplit>& layer_split_words() {
  static const Words<LayerSplit> kWords{{"whole", LayerSplit::Whole},   {"columns", LayerSplit::Columns},
                                        {"rows", LayerSplit::Rows},     {"features", LayerSplit::Features},
                                        {"tokens", LayerSplit::Tokens}, {"vocabulary", LayerSplit::Vocabulary}};
  return kWords;
}

const char* name_of(LayerSplit split) {
  return word_for(layer_split_words(), split).c_str();
}

std::vector<SplitChoice> parse_split_choices(const std::string& text) {
  std::vector<SplitChoice> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('+', at), text.size());
    const std::string item = text.substr(at, end - at);
    const std::size_t colon = item.rfind(':');
    const std::string word = colon == std::string::npos ? "" : item.substr(colon + 1);
    const auto known = find_word(layer_split_words(), word);
    if (colon == 0 || !known)
      throw InputError(fmt::format("'{}' is no split of a layer", item),
                       "expected LAYER:SPLIT with whole, columns, rows, features, tokens or vocabulary, as in "
                       "fc6:columns+fc7:rows");
    out.push_back({item.substr(0, colon), *known});
    at = end + 1;
  }
  return out;
}

std::string text_of(const std::vector<SplitChoice>& choices) {
  std::string out;
  for (const SplitChoice& choice : choices)
    out += fmt::format("{}{}:{}", out.empty() ? "" : "+", choice.layers, name_of(choice.split));
  return out;
}

}  // namespace simsync
