#include "strategies/dataset/resource_spec.hpp"

#include <fmt/format.h>

#include <map>
#include <numeric>
#include <vector>

#include "base/parse_units.hpp"
#include "base/yaml.hpp"

namespace simsync {
namespace {

constexpr const char* kLogin = "simulated";
constexpr double kGiga = 1e9;
constexpr double kBits = 8.0;

/// GPUs that take part, by node; nodes without GPUs have none.
std::map<int, int> nodes_of(const Cluster& cluster, int workers) {
  std::map<int, int> out;
  for (const Place& place : cluster.workers(workers)) ++out[place.node];
  int first = 0;
  for (const NodeGroup& group : cluster.groups) {
    for (int node = first; group.gpus == 0 && node < first + group.count; ++node) out.emplace(node, 0);
    first += group.count;
  }
  return out;
}

/// In Gbit/s; nothing for a machine without a network.
std::string bandwidth_text(const Cluster& cluster, const NodeGroup& group) {
  const auto link = cluster.links.find(group.nic_link);
  if (link == cluster.links.end()) return {};
  const double gbps = link->second.bandwidth.value() * group.nics / group.nic_slowdown * kBits / kGiga;
  return fmt::format(", network_bandwidth: {}", format_shortest(gbps));
}

/// What says nothing about speed or place is not looked at.
ResourceNode read_node(const yaml::Node& item) {
  ResourceNode out;
  for (const auto& [key, value] : item.entries()) {
    if (key == "address") out.address = value.text();
    if (key == "gpus") out.gpus = static_cast<int>(value.items().size());
  }
  if (out.address.empty()) item.fail("expected the key 'address'");
  return out;
}

}  // namespace

std::string resource_spec_text(const Cluster& cluster, int workers) {
  std::string out = "nodes:\n";
  const auto nodes = nodes_of(cluster, workers);
  for (const auto& [node, gpus] : nodes) {
    std::vector<int> indices(static_cast<std::size_t>(gpus));
    std::iota(indices.begin(), indices.end(), 0);
    out += fmt::format("  - {{address: node{}, cpus: [0], gpus: [{}]{}", node, fmt::join(indices, ", "),
                       bandwidth_text(cluster, cluster.group_of(node)));
    const bool is_chief = node == nodes.begin()->first;
    out += is_chief ? ", chief: true}\n" : fmt::format(", ssh_config: {}}}\n", kLogin);
  }
  if (nodes.size() > 1) out += fmt::format("ssh:\n  {}: {{username: nobody, key_file: none}}\n", kLogin);
  return out;
}

std::vector<ResourceNode> parse_resource_nodes(const std::string& text, const std::string& file) {
  const auto document = yaml::Document::parse(text, file);
  std::vector<ResourceNode> out;
  {
    for (const auto& [key, nodes] : document.root().entries()) {
      if (key == "nodes")
        for (const yaml::Node& item : nodes.items()) out.push_back(read_node(item));
    }
    if (out.empty()) document.root().fail("expected the key 'nodes' with a machine each");
  }
  document.finish();
  return out;
}

}  // namespace simsync
