// A cluster as text that load_cluster reads back to an equal value.
#include <fmt/format.h>

#include <algorithm>

#include "base/yaml_text.hpp"
#include "platforms/field_text.hpp"
#include "platforms/fields.hpp"
#include "platforms/measured_ratios.hpp"
#include "platforms/reader.hpp"

namespace simsync {
namespace {

/// A visitor for fields::visit.
class FieldWriter {
public:
  FieldWriter(std::string& out, std::size_t indent) : out_(out), indent_(indent, ' ') {}

  void line(const std::string& key, const std::string& text) { out_ += fmt::format("{}{}: {}\n", indent_, key, text); }
  void open(const std::string& key) { out_ += fmt::format("{}{}:\n", indent_, key); }

  template <class T>
  void need(const char* key, T& value, const yaml::Range&) {
    line(key, field_text(value));
  }
  void need(const char* key, std::string& value, const yaml::Range&) {
    if (!value.empty()) line(key, yaml_name(value));
  }
  void text(const char* key, std::string& value) {
    if (!value.empty()) line(key, value);
  }
  template <class T>
  void may(const char* key, T& value, const yaml::Range& range) {
    need(key, value, range);
  }
  template <class T>
  void may(const char* key, std::optional<T>& value, const yaml::Range& range) {
    if (value) need(key, *value, range);
  }
  template <class T>
  void table(const char* key, std::map<std::string, T>& values, const yaml::Range&, const std::vector<std::string>&) {
    if (values.empty()) return;
    open(key);
    FieldWriter inner(out_, indent_.size() + 2);
    for (const auto& [name, value] : values) inner.line(yaml_name(name), field_text(value));
  }
  template <class T>
  void part(const char* key, T& value) {
    open(key);
    FieldWriter inner(out_, indent_.size() + 2);
    fields::visit(inner, value);
  }
  template <class T>
  void named(const char* key, std::map<std::string, T>& values) {
    if (values.empty()) return;
    open(key);
    FieldWriter inner(out_, indent_.size() + 2);
    for (auto& [name, value] : values) inner.part(yaml_name(name).c_str(), value);
  }

private:
  std::string& out_;
  std::string indent_;
};

void write_devices(std::string& out, Cluster& cluster) {
  if (cluster.devices.empty()) return;
  out += "devices:\n";
  for (auto& [name, device] : cluster.devices) {
    out += fmt::format("  {}:\n", yaml_name(name));
    FieldWriter writer(out, 4);
    fields::visit(writer, device);
    if (!device.source.empty()) writer.line("source", yaml_quoted(device.source));
  }
}

void write_links(std::string& out, Cluster& cluster) {
  if (cluster.links.empty()) return;
  out += "links:\n";
  for (auto& [name, link] : cluster.links) {
    out += fmt::format("  {}:\n", yaml_name(name));
    FieldWriter writer(out, 4);
    fields::visit(writer, link);
  }
}

void write_groups(std::string& out, Cluster& cluster) {
  out += "groups:\n";
  for (auto& group : cluster.groups) {
    std::string text;
    FieldWriter writer(text, 4);
    fields::visit(writer, group);
    text[2] = '-';  // the first of its fields carries the item's dash
    out += text;
  }
}

}  // namespace

std::string to_yaml(const Cluster& cluster) {
  Cluster copy = cluster;  // the field tables are written for readers too and ask for a changeable value
  std::string out = "schema: simsync/cluster/v1\n";
  FieldWriter top(out, 0);
  top.need("name", copy.name, fields::kNone);
  if (!copy.description.empty()) top.line("description", yaml_quoted(copy.description));
  if (!copy.sources.empty()) top.open("sources");
  for (const auto& source : copy.sources) out += fmt::format("  - {}\n", yaml_quoted(source));
  top.line("precision", copy.precision);
  write_devices(out, copy);
  write_links(out, copy);
  write_groups(out, copy);
  std::vector<std::string> links;
  for (const auto& [name, link] : copy.links) links.push_back(name);
  top.open("network");
  FieldWriter network(out, 2);
  fields::visit(network, copy.network, links);
  top.part("collective", copy.collective);
  out += measured_ratios_text(copy.collective.measured, 2);
  return out;
}

}  // namespace simsync
