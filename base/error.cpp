#include "base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace simsync {

namespace {

constexpr std::size_t kWidest = 160;  ///< columns of a source line that are shown

/// Length of the UTF-8 sequence at `at`, 0 when there is none (overlong forms are not told apart).
std::size_t sequence_length(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  const std::size_t length = byte < 0x80   ? 1
                             : byte < 0xC2 ? 0
                             : byte < 0xE0 ? 2
                             : byte < 0xF0 ? 3
                             : byte < 0xF5 ? 4
                                           : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (std::size_t i = at + 1; i < at + length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) return 0;
  }
  return length;
}

/// `text` with nothing that a terminal would obey: control characters and bytes that are no UTF-8 become '?'.
/// A tab becomes one space, so that the caret stays below its column.
std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const std::size_t length = sequence_length(text, at);
    if (byte == '\t') {
      out += ' ';
    } else if (length == 0 || byte < 0x20 || byte == 0x7F) {
      out += '?';
    } else {
      out += text.substr(at, length);
    }
    at += std::max<std::size_t>(length, 1);
  }
  return out;
}

/// The part of a source line around the caret, and the caret's column in it.
std::pair<std::string, std::size_t> excerpt(const std::string& line, int column) {
  const auto caret = static_cast<std::size_t>(std::max(column, 1));
  if (line.size() <= kWidest) return {printable(line), caret};
  const std::size_t begin = caret > kWidest / 2 ? std::min(caret - kWidest / 2, line.size()) : 0;
  const std::string before = begin > 0 ? "..." : "";
  const std::string after = begin + kWidest < line.size() ? "..." : "";
  return {before + printable(std::string_view(line).substr(begin, kWidest)) + after, caret - begin + before.size()};
}

}  // namespace

std::string Diagnostic::text() const {
  std::string out;
  if (!origin.file.empty()) {
    out += printable(origin.file) + ":";
    if (origin.line > 0) out += fmt::format("{}:{}:", origin.line, origin.column);
    out += " ";
  }
  out += "error: " + printable(message);
  if (!source_line.empty() && origin.line > 0) {
    const auto [shown, caret] = excerpt(source_line, origin.column);
    out += fmt::format("\n{:>5} | {}", origin.line, shown);
    out += fmt::format("\n      | {:>{}}", "^", caret);
  }
  if (!key.empty()) out += "\n  key:  " + printable(key);
  if (!note.empty()) out += "\n  note: " + printable(note);
  if (!help.empty()) out += "\n  help: " + printable(help);
  return out;
}

namespace {

std::string join(const std::vector<Diagnostic>& diagnostics) {
  std::string out;
  for (const auto& d : diagnostics) out += (out.empty() ? "" : "\n") + d.text();
  return out;
}

/// Insertions, deletions, substitutions and swaps of neighbors (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1), above[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

}  // namespace

InputError::InputError(std::vector<Diagnostic> diagnostics)
    : std::runtime_error(join(diagnostics)), diagnostics_(std::move(diagnostics)) {}

InputError::InputError(Diagnostic diagnostic) : InputError(std::vector<Diagnostic>{std::move(diagnostic)}) {}

InputError::InputError(std::string message, std::string help)
    : InputError(Diagnostic{.origin = {},
                            .message = std::move(message),
                            .key = {},
                            .source_line = {},
                            .note = {},
                            .help = std::move(help)}) {}

std::string closest(std::string_view wrong, const std::vector<std::string>& known) {
  constexpr std::size_t kLongestWorthComparing = 200;
  if (wrong.size() > kLongestWorthComparing) return {};
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(1, wrong.size() / 3) + 1;
  for (const auto& name : known) {
    const std::size_t distance = edit_distance(wrong, name);
    if (distance < best_distance) {
      best_distance = distance;
      best = name;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view wrong, const std::vector<std::string>& known) {
  const std::string name = closest(wrong, known);
  if (!name.empty()) return fmt::format("did you mean '{}'?", name);
  constexpr std::size_t kTellingPrefix = 2;
  constexpr std::size_t kMost = 3;
  std::vector<std::string> longer;  // names that were not written to their end
  for (const auto& one : known)
    if (wrong.size() >= kTellingPrefix && one.starts_with(wrong)) longer.push_back(fmt::format("'{}'", one));
  if (longer.empty()) return {};
  longer.resize(std::min(longer.size(), kMost));
  return fmt::format("did you mean {}?", fmt::join(longer, " or "));
}

void assertion_failed(const char* expression, const char* file, int line) {
  throw std::logic_error(fmt::format("{}:{}: internal error: {}", file, line, expression));
}

}  // namespace simsync
