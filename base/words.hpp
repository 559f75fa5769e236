// Words for the values of an enumeration: the same in files, options, tables and messages.
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace simsync {

template <class E>
using Words = std::vector<std::pair<std::string, E>>;

/// What the word stands for. None: it is no such word.
template <class E>
std::optional<E> find_word(const Words<E>& words, std::string_view word) {
  const auto found = std::find_if(words.begin(), words.end(), [&](const auto& one) { return one.first == word; });
  return found == words.end() ? std::nullopt : std::optional<E>(found->second);
}

/// The first word for a value that has one.
template <class E>
const std::string& word_for(const Words<E>& words, E value) {
  const auto found = std::find_if(words.begin(), words.end(), [&](const auto& one) { return one.second == value; });
  SIMSYNC_ASSERT(found != words.end());
  return found->first;
}

/// All words, in their order.
template <class E>
std::vector<std::string> names_in(const Words<E>& words) {
  std::vector<std::string> out;
  for (const auto& [word, value] : words) out.push_back(word);
  return out;
}

}  // namespace simsync
