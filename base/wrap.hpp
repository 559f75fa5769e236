// Text in lines of a limited width.
#pragma once
#include <cstddef>
#include <string>

namespace simsync {

/// Breaks text where it has spaces into lines of at most `width` characters (a longer word has a line of its own);
/// each line but the first begins with `indent` spaces. A percent sign stays with its number. No line end behind the
/// last.
std::string wrapped(const std::string& text, std::size_t width, std::size_t indent = 0);

}  // namespace simsync
