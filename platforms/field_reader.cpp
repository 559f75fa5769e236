#include "platforms/field_reader.hpp"

namespace simsync {

const yaml::Node& NodeIndex::at(std::string key) const {
  static const yaml::Node kNowhere;
  for (;;) {
    const auto found = nodes_.find(key);
    if (found != nodes_.end()) return found->second;
    if (key.empty()) return kNowhere;
    const auto dot = key.find_last_of(".[");
    key.resize(dot == std::string::npos ? 0 : dot);
  }
}

bool read_name(const yaml::Node& entry, const std::string& key, std::string& name) {
  const auto wrong = parse_field(key, name, {});
  if (wrong) entry.fail(*wrong);
  return !wrong;
}

std::string read_text(yaml::Mapping& mapping, const std::string& key) {
  const auto node = mapping.optional(key);
  return node ? node.text() : std::string{};
}

}  // namespace simsync
