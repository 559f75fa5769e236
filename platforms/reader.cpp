#include "platforms/reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.hpp"
#include "base/yaml.hpp"
#include "platforms/check.hpp"
#include "platforms/field_reader.hpp"
#include "platforms/fields.hpp"
#include "platforms/measured_ratios.hpp"

namespace simsync {
namespace {

constexpr std::size_t kMostGroups = 1000;

std::map<std::string, DeviceClass> read_devices(const yaml::Node& node, NodeIndex& index) {
  std::map<std::string, DeviceClass> devices;
  for (const auto& [name, entry] : node.entries()) {
    DeviceClass device;
    if (!read_name(entry, name, device.name)) continue;
    auto mapping = entry.mapping();
    FieldReader reader(mapping, index);
    fields::visit(reader, device);
    device.source = read_text(mapping, "source");
    if (device.peak.empty()) entry.fail("missing key 'peak': compute rates by precision");
    devices.emplace(name, std::move(device));
  }
  return devices;
}

std::map<std::string, LinkClass> read_links(const yaml::Node& node, NodeIndex& index) {
  std::map<std::string, LinkClass> links;
  for (const auto& [name, entry] : node.entries()) {
    LinkClass link;
    if (!read_name(entry, name, link.name)) continue;
    auto mapping = entry.mapping();
    FieldReader reader(mapping, index);
    fields::visit(reader, link);
    links.emplace(name, std::move(link));
  }
  return links;
}

std::vector<NodeGroup> read_groups(const yaml::Node& node, NodeIndex& index) {
  std::vector<NodeGroup> groups;
  const auto items = node.items();
  if (items.size() > kMostGroups) node.fail(fmt::format("{} groups: expected at most {}", items.size(), kMostGroups));
  for (std::size_t i = 0; i < std::min(items.size(), kMostGroups); ++i) {
    index.add(items[i]);
    auto mapping = items[i].mapping();
    FieldReader reader(mapping, index);
    fields::visit(reader, groups.emplace_back());
  }
  return groups;
}

void read_sources(yaml::Mapping& top, Cluster& cluster) {
  top.maybe("sources", [&](const yaml::Node& node) {
    for (const auto& item : node.items()) cluster.sources.push_back(item.text());
  });
}

void read_cluster(const yaml::Node& root, Cluster& cluster, NodeIndex& index) {
  index.add(root);
  auto top = root.mapping();
  FieldReader reader(top, index);
  (void)top.require("schema").choice({"simsync/cluster/v1"});
  reader.need("name", cluster.name, fields::kNone);
  cluster.description = read_text(top, "description");
  read_sources(top, cluster);
  top.maybe("precision",
            [&](const yaml::Node& n) { cluster.precision = known_precisions()[n.choice(known_precisions())]; });
  top.maybe("devices", [&](const yaml::Node& n) { cluster.devices = read_devices(n, index); });
  top.maybe("links", [&](const yaml::Node& n) { cluster.links = read_links(n, index); });
  if (const auto groups = top.require("groups")) {
    index.add(groups);
    cluster.groups = read_groups(groups, index);
  }
  std::vector<std::string> links;
  for (const auto& [name, link] : cluster.links) links.push_back(name);
  top.maybe("network", [&](const yaml::Node& n) {
    auto mapping = n.mapping();
    FieldReader part(mapping, index);
    fields::visit(part, cluster.network, links);
  });
  top.maybe("collective", [&](const yaml::Node& n) {
    index.add(n);
    auto mapping = n.mapping();
    FieldReader part(mapping, index);
    fields::visit(part, cluster.collective);
    if (const auto measured = mapping.optional("measured"))
      cluster.collective.measured = read_measured_ratios(measured);
  });
}

/// Adds the devices that the groups name and the file does not describe.
void add_catalogue_devices(Cluster& cluster, const NodeIndex& index) {
  std::map<std::string, DeviceClass> catalogue;
  for (std::size_t i = 0; i < cluster.groups.size(); ++i) {
    const std::string& name = cluster.groups[i].device;
    if (name.empty() || cluster.devices.contains(name)) continue;
    if (catalogue.empty()) catalogue = device_catalogue();
    const auto found = catalogue.find(name);
    if (found != catalogue.end()) {
      cluster.devices.insert(*found);
      continue;
    }
    std::vector<std::string> known;
    for (const auto& [key, device] : cluster.devices) known.push_back(key);
    for (const auto& [key, device] : catalogue) known.push_back(key);
    std::string help = did_you_mean(name, known);
    if (help.empty()) help = fmt::format("known devices: {}", fmt::join(known, ", "));
    index.at(fmt::format("groups[{}].device", i)).fail(fmt::format("unknown device '{}'", name), help);
  }
}

/// @throws InputError for a file that AutoDist understands and load_cluster does not.
void refuse_autodist(const yaml::Document& document) {
  const yaml::Node root = document.root();
  if (!root.has("nodes") || root.has("schema") || root.has("groups")) return;
  root.fail("this looks like AutoDist's resource specification, not like a cluster",
            fmt::format("'simsync import {} {} --device GPU --out cluster.yaml' makes a cluster of it", kAutodistFormat,
                        document.file()));
  document.finish();
}

Cluster read_document(const yaml::Document& document) {
  refuse_autodist(document);
  Cluster cluster;
  NodeIndex index;
  read_cluster(document.root(), cluster, index);
  cluster.file = document.file();
  document.finish();  // what follows looks at the parts together and would only repeat what is wrong within one
  add_catalogue_devices(cluster, index);
  document.finish();
  for (const auto& finding : check(cluster)) index.at(finding.key).fail(finding.message, finding.help);
  document.finish();
  return cluster;
}

}  // namespace

Cluster load_cluster(const std::string& path) {
  return read_document(yaml::Document::load(path));
}

Cluster parse_cluster(const std::string& text, const std::string& file) {
  return read_document(yaml::Document::parse(text, file));
}

Cluster find_cluster(const std::string& name_or_path) {
  return load_cluster(resolve_name(name_or_path, "platforms/presets", ".yaml", "cluster"));
}

std::vector<std::string> known_clusters() {
  return list_files(data_folder("platforms/presets"), ".yaml");
}

std::map<std::string, DeviceClass> device_catalogue() {
  const auto document = yaml::Document::load(data_folder("platforms") + "/devices.yaml");
  std::map<std::string, DeviceClass> devices;
  {
    NodeIndex index;
    auto top = document.root().mapping();
    (void)top.require("schema").choice({"simsync/devices/v1"});
    devices = read_devices(top.require("devices"), index);
  }
  document.finish();
  return devices;
}

Cluster grown_to(Cluster cluster, int workers) {
  const int missing = workers - cluster.gpu_count();
  if (missing <= 0) return cluster;
  const auto last =
      std::find_if(cluster.groups.rbegin(), cluster.groups.rend(), [](const NodeGroup& g) { return g.gpus > 0; });
  if (last == cluster.groups.rend())
    throw PlanError(fmt::format("cluster '{}' has no GPUs, {} workers asked for", cluster.name, workers));
  if (last->nic_link.empty())
    throw PlanError(fmt::format("cluster '{}' is one machine without a network: it has {} GPUs, {} workers asked for",
                                cluster.name, cluster.gpu_count(), workers));
  const int more = missing / last->gpus + (missing % last->gpus != 0 ? 1 : 0);
  if (more > kMaxNodes - cluster.node_count())
    throw PlanError(fmt::format("{} workers need {} nodes of cluster '{}': expected at most {}", workers,
                                static_cast<long long>(cluster.node_count()) + more, cluster.name, kMaxNodes));
  last->count += more;
  return cluster;
}

}  // namespace simsync
