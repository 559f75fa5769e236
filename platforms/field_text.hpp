// One value of a cluster file as text, both ways: the reader, the writer and set_parameter agree by using these.
#pragma once
#include <optional>
#include <string>

#include "base/units.hpp"
#include "base/yaml.hpp"

namespace simsync {

/// A user's own name: letters, digits and `._+-`, at most 64.
bool is_name(const std::string& text);

/// Reads `text` into `value`. Returns what is wrong with it, or nothing. `range` is in the unit of the type
/// (bytes, seconds, ...) and is not looked at for names and truth values.
std::optional<std::string> parse_field(const std::string& text, double& value, const yaml::Range& range);
std::optional<std::string> parse_field(const std::string& text, int& value, const yaml::Range& range);
std::optional<std::string> parse_field(const std::string& text, bool& value, const yaml::Range& range);
std::optional<std::string> parse_field(const std::string& text, std::string& value, const yaml::Range& range);
std::optional<std::string> parse_field(const std::string& text, Seconds& value, const yaml::Range& range);
std::optional<std::string> parse_field(const std::string& text, Bytes& value, const yaml::Range& range);
std::optional<std::string> parse_field(const std::string& text, Flops& value, const yaml::Range& range);
std::optional<std::string> parse_field(const std::string& text, BytesPerSecond& value, const yaml::Range& range);
std::optional<std::string> parse_field(const std::string& text, FlopsPerSecond& value, const yaml::Range& range);

/// Text that parse_field reads back as exactly the same value, in the unit that makes it shortest.
std::string field_text(double value);
std::string field_text(int value);
std::string field_text(bool value);
std::string field_text(const std::string& value);
std::string field_text(Seconds value);
std::string field_text(Bytes value);
std::string field_text(Flops value);
std::string field_text(BytesPerSecond value);
std::string field_text(FlopsPerSecond value);

}  // namespace simsync
