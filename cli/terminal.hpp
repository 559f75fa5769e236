// What the terminal can show.
#pragma once
#include <cstddef>
#include <string>

namespace simsync {

struct TerminalStyle {
  std::size_t width = 80;  ///< columns
  bool unicode = false;    ///< the locale is UTF-8
};

/// The width is that of COLUMNS, else of the terminal on standard output, else 80; at least 40.
TerminalStyle terminal_style();
/// Whether standard output is a terminal.
bool prints_to_terminal();

/// How many columns a UTF-8 text takes, none of whose characters is wide.
std::size_t columns_of(const std::string& text);
/// The text in exactly `width` columns: filled with spaces behind it, or cut, with a mark at its end.
std::string fitted(const std::string& text, std::size_t width, const TerminalStyle& style);
/// A bar as long as `share` (0 to 1) of `width` columns, in eighths of a column where the locale is UTF-8, filled with
/// spaces. What is not nothing is seen.
std::string bar(double share, std::size_t width, const TerminalStyle& style);

/// Prints a line of a summary, `  label        text`, continued below where it is longer than the terminal is wide.
void print_line(const std::string& label, const std::string& text);

}  // namespace simsync
