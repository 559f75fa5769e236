// Texts as YAML that reads back to the same.
#pragma once
#include <string>

namespace simsync {

/// Double-quoted YAML; control characters as escapes.
std::string yaml_quoted(const std::string& text);
/// A name or a word as it stands where YAML cannot take it for something else (`null`, a number, an indicator).
std::string yaml_name(const std::string& name);

}  // namespace simsync
