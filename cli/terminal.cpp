#include "cli/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <iostream>

#include "base/parse_units.hpp"
#include "base/wrap.hpp"

namespace simsync {
namespace {

bool utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string text = value;
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text.find("utf-8") != std::string::npos || text.find("utf8") != std::string::npos;
  }
  return false;
}

std::size_t terminal_width() {
  constexpr std::size_t kUsual = 80;
  const char* columns = std::getenv("COLUMNS");
  const auto said = columns == nullptr ? std::nullopt : parse_integer(columns);
  if (said && *said > 0) return static_cast<std::size_t>(*said);
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return kUsual;
}

bool begins_character(char c) {
  constexpr unsigned kMask = 0xC0;
  constexpr unsigned kContinues = 0x80;
  return (static_cast<unsigned char>(c) & kMask) != kContinues;
}

}  // namespace

TerminalStyle terminal_style() {
  constexpr std::size_t kLeast = 40;
  return {std::max(kLeast, terminal_width()), utf8_locale()};
}

bool prints_to_terminal() {
  return isatty(STDOUT_FILENO) == 1;
}

std::size_t columns_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string fitted(const std::string& text, std::size_t width, const TerminalStyle& style) {
  const std::size_t columns = columns_of(text);
  if (columns <= width) return text + std::string(width - columns, ' ');
  if (width == 0) return {};
  std::size_t at = 0;
  for (std::size_t seen = 0; at < text.size(); ++at)
    if (begins_character(text[at]) && seen++ == width - 1) break;
  return text.substr(0, at) + (style.unicode ? "\u2026" : "~");
}

std::string bar(double share, std::size_t width, const TerminalStyle& style) {
  constexpr int kParts = 8;
  static const std::array<const char*, kParts> kBlocks{"",       "\u258f", "\u258e", "\u258d",
                                                       "\u258c", "\u258b", "\u258a", "\u2589"};
  const double columns = std::clamp(share, 0.0, 1.0) * static_cast<double>(width);
  const int least = share > 0.0 ? 1 : 0;
  if (!style.unicode) {
    const auto filled = static_cast<std::size_t>(std::max<long>(least, std::lround(columns)));
    return std::string(filled, '#') + std::string(width - filled, ' ');
  }
  const long eighths = std::max<long>(least, std::lround(columns * kParts));
  std::string out;
  for (long i = 0; i < eighths / kParts; ++i) out += "\u2588";
  out += kBlocks.at(static_cast<std::size_t>(eighths % kParts));
  return out + std::string(width - columns_of(out), ' ');
}

void print_line(const std::string& label, const std::string& text) {
  constexpr std::size_t kIndent = 15;
  // Spaces at the beginning and between label and text would be taken for places to break.
  const std::string body = wrapped(std::string(kIndent, '.') + text, terminal_style().width, kIndent);
  std::cout << fmt::format("  {:<13}{}\n", label, body.substr(kIndent));
}

}  // namespace simsync
