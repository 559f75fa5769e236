// Single numbers of a cluster by name, for --set and for calibrations.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "base/error.hpp"
#include "platforms/check.hpp"
#include "platforms/field_text.hpp"
#include "platforms/fields.hpp"
#include "platforms/reader.hpp"

namespace simsync {
namespace {

struct Parameter {
  std::function<std::optional<std::string>(const std::string&)> set;  ///< returns what is wrong with the text
  std::function<std::string()> text;
};
using Parameters = std::map<std::string, Parameter>;

constexpr const char* kAbsent = "none";
constexpr std::string_view kEveryGroup = "group.*.";

std::string group_prefix(const NodeGroup& group) {
  return fmt::format("group.{}.", group.name);
}

/// A visitor for fields::visit that gathers a Parameter per number. Texts and names of links and
/// devices are left out.
class Collector {
public:
  Collector(Parameters& parameters, std::string prefix) : parameters_(parameters), prefix_(std::move(prefix)) {}

  template <class T>
  void need(const char* key, T& value, const yaml::Range& range) {
    parameters_[prefix_ + key] = {[&value, range](const std::string& text) { return parse_field(text, value, range); },
                                  [&value] { return field_text(value); }};
  }
  void need(const char*, std::string&, const yaml::Range&) {}
  void text(const char*, std::string&) {}
  template <class T>
  void may(const char* key, T& value, const yaml::Range& range) {
    need(key, value, range);
  }
  template <class T>
  void may(const char* key, std::optional<T>& value, const yaml::Range& range) {
    const auto set = [&value, range](const std::string& text) -> std::optional<std::string> {
      if (text == kAbsent) {
        value.reset();
        return std::nullopt;
      }
      return parse_field(text, value.emplace(), range);
    };
    parameters_[prefix_ + key] = {set, [&value] { return value ? field_text(*value) : kAbsent; }};
  }
  template <class T>
  void table(const char* key, std::map<std::string, T>& values, const yaml::Range& range,
             const std::vector<std::string>& names) {
    for (const auto& name : names) {
      const auto set = [&values, name, range](const std::string& text) -> std::optional<std::string> {
        if (text != kAbsent) return parse_field(text, values[name], range);
        values.erase(name);
        return std::nullopt;
      };
      const auto get = [&values, name] {
        return values.contains(name) ? field_text(values.at(name)) : std::string{kAbsent};
      };
      parameters_[fmt::format("{}{}.{}", prefix_, key, name)] = {set, get};
    }
  }
  template <class T>
  void part(const char* key, T& value) {
    Collector inner(parameters_, fmt::format("{}{}.", prefix_, key));
    fields::visit(inner, value);
  }
  template <class T>
  void named(const char* key, std::map<std::string, T>& values) {
    for (auto& [name, value] : values) {
      Collector inner(parameters_, fmt::format("{}{}.{}.", prefix_, key, name));
      fields::visit(inner, value);
    }
  }

private:
  Parameters& parameters_;
  std::string prefix_;
};

/// The parameters of `cluster`; they refer to it.
Parameters parameters_of(Cluster& cluster) {
  Parameters parameters;
  std::vector<std::string> links;
  for (auto& [name, link] : cluster.links) {
    links.push_back(name);
    Collector collector(parameters, fmt::format("link.{}.", name));
    fields::visit(collector, link);
  }
  for (auto& [name, device] : cluster.devices) {
    Collector collector(parameters, fmt::format("device.{}.", name));
    fields::visit(collector, device);
  }
  for (auto& group : cluster.groups) {
    Collector collector(parameters, group_prefix(group));
    fields::visit(collector, group);
  }
  Collector network(parameters, "network.");
  fields::visit(network, cluster.network, links);
  Collector collective(parameters, "collective.");
  fields::visit(collective, cluster.collective);
  parameters["precision"] = {[&cluster](const std::string& t) { return parse_field(t, cluster.precision, {}); },
                             [&cluster] { return cluster.precision; }};
  return parameters;
}

/// The parameters that a key stands for: `group.*.` is that of every group.
std::vector<std::string> expanded(const std::string& key, const Cluster& cluster) {
  if (!key.starts_with(kEveryGroup)) return {key};
  std::vector<std::string> keys;
  for (const NodeGroup& group : cluster.groups) keys.push_back(group_prefix(group) + key.substr(kEveryGroup.size()));
  return keys;
}

std::vector<std::string> keys_of(const Parameters& parameters) {
  std::vector<std::string> keys;
  for (const auto& [key, parameter] : parameters) keys.push_back(key);
  return keys;
}

const Parameter& find(const Parameters& parameters, const std::string& key, const Cluster& cluster) {
  const auto found = parameters.find(key);
  if (found != parameters.end()) return found->second;
  std::string help = did_you_mean(key, keys_of(parameters));
  if (help.empty()) help = "keys begin with link.<name>, device.<name>, group.<name>, network, collective or precision";
  throw InputError(fmt::format("cluster '{}' has no parameter '{}'", cluster.name, key), help);
}

}  // namespace

void set_parameters(Cluster& cluster, const std::vector<std::pair<std::string, std::string>>& values) {
  Cluster changed = cluster;
  const Parameters parameters = parameters_of(changed);
  std::optional<InputError> contradiction;  // later values may end it
  for (const auto& [key, value] : values) {
    for (const auto& one : expanded(key, cluster))
      if (const auto wrong = find(parameters, one, cluster).set(value))
        throw InputError(fmt::format("{}: {}", key, *wrong));
    const auto findings = check(changed);
    if (findings.empty()) {
      contradiction.reset();
    } else if (!contradiction) {
      contradiction.emplace(fmt::format("{}={} does not fit cluster '{}': {}: {}", key, value, cluster.name,
                                        findings.front().key, findings.front().message),
                            findings.front().help);
    }
  }
  if (contradiction) throw *contradiction;
  cluster = std::move(changed);
}

void set_parameter(Cluster& cluster, const std::string& key, const std::string& value) {
  set_parameters(cluster, {{key, value}});
}

std::vector<std::string> parameter_keys(const Cluster& cluster) {
  Cluster copy = cluster;
  return keys_of(parameters_of(copy));
}

std::vector<std::string> settable_keys(const Cluster& cluster) {
  std::vector<std::string> keys = parameter_keys(cluster);
  if (cluster.groups.empty()) return keys;
  // Every group has the same fields, so the first one's name them.
  const std::string first = group_prefix(cluster.groups.front());
  for (std::size_t i = 0, numbers = keys.size(); i < numbers; ++i)
    if (keys[i].starts_with(first)) keys.push_back(std::string(kEveryGroup) + keys[i].substr(first.size()));
  return keys;
}

std::string parameter_text(const Cluster& cluster, const std::string& key) {
  Cluster copy = cluster;
  return find(parameters_of(copy), key, cluster).text();
}

}  // namespace simsync
