// Reads the tables of fields.hpp from a mapping of a file.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/yaml.hpp"
#include "platforms/field_text.hpp"
#include "platforms/fields.hpp"

namespace simsync {

/// Values by key path, so that a later check can name their place.
class NodeIndex {
public:
  void add(const yaml::Node& node) { nodes_.insert_or_assign(node.key_path(), node); }
  /// The value at `key`, or at the nearest enclosing key that the file has.
  [[nodiscard]] const yaml::Node& at(std::string key) const;

private:
  std::map<std::string, yaml::Node> nodes_;
};

/// Notes an error and returns false when `key`, the user's own name of `entry`, is not a name.
bool read_name(const yaml::Node& entry, const std::string& key, std::string& name);
/// Free text, or empty when there is no such key.
std::string read_text(yaml::Mapping& mapping, const std::string& key);

/// A visitor for fields::visit.
class FieldReader {
public:
  FieldReader(yaml::Mapping& mapping, NodeIndex& index) : mapping_(mapping), index_(index) {}

  template <class T>
  void need(const char* key, T& value, const yaml::Range& range) {
    read(mapping_.require(key), value, range);
  }
  template <class T>
  void may(const char* key, T& value, const yaml::Range& range) {
    read(mapping_.optional(key), value, range);
  }
  /// Text that is no name; who uses it checks it.
  void text(const char* key, std::string& value) {
    const yaml::Node node = mapping_.optional(key);
    if (!node) return;
    index_.add(node);
    value = node.text();
  }
  template <class T>
  void table(const char* key, std::map<std::string, T>& values, const yaml::Range& range,
             const std::vector<std::string>& names) {
    mapping_.maybe(key, [&](const yaml::Node& node) {
      auto inner = node.mapping();
      FieldReader reader(inner, index_);
      for (const auto& name : names) {
        if (const auto entry = inner.optional(name)) reader.read(entry, values[name], range);
      }
    });
  }
  template <class T>
  void part(const char* key, T& value) {
    mapping_.maybe(key, [&](const yaml::Node& node) {
      index_.add(node);
      auto inner = node.mapping();
      FieldReader reader(inner, index_);
      fields::visit(reader, value);
    });
  }

  template <class T>
  void named(const char* key, std::map<std::string, T>& values) {
    mapping_.maybe(key, [&](const yaml::Node& node) {
      index_.add(node);
      for (const auto& [name, entry] : node.entries()) {
        std::string checked;
        if (!read_name(entry, name, checked)) continue;
        index_.add(entry);
        auto inner = entry.mapping();
        FieldReader reader(inner, index_);
        fields::visit(reader, values[name]);
      }
    });
  }

private:
  template <class T>
  void read(const yaml::Node& node, T& value, const yaml::Range& range) {
    if (!node) return;
    index_.add(node);
    const std::string text = node.text();
    if (text.empty()) return;
    if (const auto wrong = parse_field(text, value, range)) node.fail(*wrong);
  }
  template <class T>
  void read(const yaml::Node& node, std::optional<T>& value, const yaml::Range& range) {
    if (node) read(node, value.emplace(), range);
  }

  yaml::Mapping& mapping_;
  NodeIndex& index_;
};

}  // namespace simsync
