#include "base/wrap.hpp"

#include <algorithm>
#include <string_view>

namespace simsync {
namespace {

/// End of the word that begins at `at`; a number and the percent sign behind it are one word.
std::size_t end_of_word(const std::string& text, std::size_t at) {
  constexpr std::string_view kPercent = " %";
  std::size_t end = std::min(text.find(' ', at), text.size());
  if (end > at && text.compare(end, kPercent.size(), kPercent) == 0)
    end = std::min(text.find(' ', end + kPercent.size()), text.size());
  return end;
}

}  // namespace

std::string wrapped(const std::string& text, std::size_t width, std::size_t indent) {
  std::string out;
  std::size_t column = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = end_of_word(text, at);
    const std::size_t length = end - at;
    if (column > 0 && column + 1 + length > width) {
      out += '\n';
      out.append(indent, ' ');
      column = indent;
    } else if (column > 0) {
      out += ' ';
      ++column;
    }
    out += text.substr(at, length);
    column += length;
    at = end + 1;
  }
  return out;
}

}  // namespace simsync
