// Lines of a tool's output, numbered, cut into words. Private to validate/calibrate.
#pragma once
#include <string>
#include <vector>

#include "base/error.hpp"

namespace simsync::detail {

struct TextLine {
  int number = 0;  ///< from 1
  std::string text;
  std::vector<std::string> words;
};
std::vector<TextLine> lines_of(const std::string& text);

/// A number of at least `least`. @throws InputError at the line otherwise.
double number_in(const std::string& word, double least, const char* what, const TextLine& line,
                 const std::string& file);
[[noreturn]] void fail_at(const TextLine& line, const std::string& file, const std::string& message,
                          const std::string& help = {});
/// For text that has no measurement at all.
[[noreturn]] void nothing_in(const std::string& file, const char* format);

}  // namespace simsync::detail
