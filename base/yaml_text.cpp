#include "base/yaml_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace simsync {

std::string yaml_quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string yaml_name(const std::string& name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto is_plain = [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || std::string_view("_.*/+-").find(c) != std::string_view::npos;
  };
  const bool special = name == "null" || name == "Null" || name == "NULL";
  const bool plain = is_letter(name[0]) && std::all_of(name.begin(), name.end(), is_plain);
  return plain && !special ? name : yaml_quoted(name);
}

}  // namespace simsync
