#include "platforms/yaml_text.hpp"

#include <fmt/format.h>

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
  const bool letter = (name[0] >= 'a' && name[0] <= 'z') || (name[0] >= 'A' && name[0] <= 'Z');
  const bool special = name == "null" || name == "Null" || name == "NULL";
  return letter && !special ? name : yaml_quoted(name);
}

}  // namespace simsync
