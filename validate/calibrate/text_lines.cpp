#include "validate/calibrate/text_lines.hpp"

#include <fmt/format.h>

#include <sstream>

#include "base/parse_units.hpp"

namespace simsync::detail {

std::vector<TextLine> lines_of(const std::string& text) {
  std::vector<TextLine> out;
  std::istringstream in(text);
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    TextLine next{.number = number, .text = line, .words = {}};
    std::istringstream words(line);
    for (std::string word; words >> word;) next.words.push_back(word);
    out.push_back(std::move(next));
  }
  return out;
}

double number_in(const std::string& word, double least, const char* what, const TextLine& line,
                 const std::string& file) {
  const auto number = parse_number(word);
  if (!number || *number < least) fail_at(line, file, fmt::format("expected {}, got '{}'", what, word));
  return *number;
}

void fail_at(const TextLine& line, const std::string& file, const std::string& message, const std::string& help) {
  throw InputError(Diagnostic{.origin = {file, line.number, 1},
                              .message = message,
                              .key = {},
                              .source_line = line.text,
                              .note = {},
                              .help = help});
}

void nothing_in(const std::string& file, const char* format) {
  throw InputError(Diagnostic{.origin = {file, 0, 0},
                              .message = fmt::format("no measurement in this {}", format),
                              .key = {},
                              .source_line = {},
                              .note = {},
                              .help = "was the run cut short?"});
}

}  // namespace simsync::detail
