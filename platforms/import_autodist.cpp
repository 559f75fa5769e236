// AutoDist's resource specification: https://github.com/petuum/autodist, docs/usage/tutorials/multi-node.md.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/parse_units.hpp"
#include "base/yaml.hpp"
#include "platforms/field_text.hpp"
#include "platforms/reader.hpp"

namespace simsync {
namespace {

constexpr double kDefaultGbps = 1.0;  // what AutoDist assumes, with a warning, where nothing is given

struct Machine {
  std::string address;
  int gpus = 0;
  double gbps = kDefaultGbps;
  bool bandwidth_given = false;
  bool chief = false;
  yaml::Node node;
};

/// How many indices a list names; each must be a whole number and occur once.
int count_indices(const yaml::Node& list) {
  constexpr std::int64_t kLargestIndex = 1 << 16;
  std::set<std::int64_t> seen;
  for (const auto& item : list.items()) {
    const std::int64_t index = item.integer(0, kLargestIndex);
    if (!seen.insert(index).second) item.fail(fmt::format("index {} is named twice", index));
  }
  if (seen.size() > kMaxGpusPerNode) {
    list.fail(fmt::format("{} devices in one node: expected at most {}", seen.size(), kMaxGpusPerNode));
    return kMaxGpusPerNode;
  }
  return static_cast<int>(seen.size());
}

Machine read_machine(const yaml::Node& item) {
  constexpr yaml::Range kGbps{1e-3, 1e5};
  Machine machine;
  machine.node = item;
  auto mapping = item.mapping();
  machine.address = mapping.require("address").text();
  mapping.maybe("gpus", [&](const yaml::Node& n) { machine.gpus = count_indices(n); });
  mapping.maybe("cpus", [&](const yaml::Node& n) { (void)count_indices(n); });
  mapping.maybe("chief", [&](const yaml::Node& n) { machine.chief = n.boolean(); });
  mapping.maybe("ssh_config", [](const yaml::Node& n) { (void)n.text(); });
  mapping.maybe("network_bandwidth", [&](const yaml::Node& n) {
    machine.gbps = n.number(kGbps);
    machine.bandwidth_given = true;
  });
  return machine;
}

void check_machines(const std::vector<Machine>& machines, const yaml::Node& list) {
  std::set<std::string> addresses;
  int chiefs = 0;
  for (const auto& machine : machines) {
    if (!addresses.insert(machine.address).second)
      machine.node.fail(fmt::format("a second node has the address '{}'", machine.address));
    const bool loopback = machine.address == "localhost" || machine.address.starts_with("127.");
    if (loopback && machines.size() > 1)
      machine.node.fail(
          fmt::format("'{}' names this machine only: a node among several needs its own address", machine.address));
    chiefs += machine.chief ? 1 : 0;
  }
  if (machines.empty()) list.fail("a resource specification needs at least one node");
  if (machines.size() > kMaxNodes) list.fail(fmt::format("{} nodes: expected at most {}", machines.size(), kMaxNodes));
  if (machines.size() > 1 && chiefs != 1)
    list.fail(fmt::format("exactly one node must have 'chief: true', {} have it", chiefs));
}

std::string link_name(double gbps) {
  return fmt::format("network-{}gbps", format_shortest(gbps));
}

/// Consecutive alike machines become one group, so that node numbers follow the file.
void add_machine(Cluster& cluster, const Machine& machine, const std::string& device) {
  const std::string link = link_name(machine.gbps);
  if (!cluster.links.contains(link)) {
    LinkClass network;
    network.name = link;
    network.bandwidth = BytesPerSecond{machine.gbps * 1e9 / 8};
    network.latency = Seconds{30e-6};
    cluster.links.emplace(link, network);
  }
  if (!cluster.groups.empty()) {
    NodeGroup& last = cluster.groups.back();
    if (last.gpus == machine.gpus && last.nic_link == link) {
      ++last.count;
      return;
    }
  }
  NodeGroup group;
  group.name = fmt::format("group{}", cluster.groups.size());
  group.gpus = machine.gpus;
  if (machine.gpus > 0) group.device = device;
  if (machine.gpus > 0) group.fabric.pcie_link = "pcie";
  group.nic_link = link;
  cluster.groups.push_back(std::move(group));
}

std::string name_from(const std::string& path) {
  constexpr std::size_t kLongest = 64;
  std::string name = std::filesystem::path(path).stem().string().substr(0, kLongest);
  for (char& c : name) {
    if (!is_name(std::string(1, c))) c = '-';
  }
  return name.empty() ? "imported" : name;
}

void add_sources(Cluster& cluster, const std::vector<Machine>& machines, const std::string& path) {
  cluster.sources.push_back(
      fmt::format("AutoDist resource specification {}", std::filesystem::path(path).filename().string()));
  cluster.sources.push_back(
      "assumed, because the format does not say it: PCIe 3.0 x16 inside nodes, 30 us one-way network "
      "latency, links without loss, and a cluster file's defaults for processors and collectives");
  for (std::size_t i = 0; i < machines.size(); ++i) {
    if (machines[i].chief || machines.size() == 1)
      cluster.sources.push_back(fmt::format("chief: node{} ({})", i, machines[i].address));
  }
  const auto silent =
      std::count_if(machines.begin(), machines.end(), [](const Machine& m) { return !m.bandwidth_given; });
  if (silent > 0)
    cluster.sources.push_back(fmt::format(
        "assumed 1 Gbit/s for {} of {} nodes: they give no network_bandwidth, and predictions are only as good as it",
        silent, machines.size()));
}

}  // namespace

Cluster import_autodist_resource_spec(const std::string& path, const std::string& device) {
  return parse_autodist_resource_spec(read_file(path), path, device);
}

Cluster parse_autodist_resource_spec(const std::string& text, const std::string& file, const std::string& device) {
  const auto document = yaml::Document::parse(text, file);
  std::vector<Machine> machines;
  {
    auto top = document.root().mapping();
    (void)top.optional("ssh");  // how to log in, which says nothing about speed
    const auto list = top.require("nodes");
    for (const auto& item : list.items()) machines.push_back(read_machine(item));
    if (list) check_machines(machines, list);
  }
  document.finish();
  const auto catalogue = device_catalogue();
  const auto found = catalogue.find(device);
  if (found == catalogue.end()) {
    std::vector<std::string> known;
    for (const auto& [name, entry] : catalogue) known.push_back(name);
    std::string help = did_you_mean(device, known);
    if (help.empty()) help = fmt::format("known devices: {}", fmt::join(known, ", "));
    throw InputError(fmt::format("unknown device '{}'", device), help);
  }
  Cluster cluster;
  cluster.name = name_from(file);
  cluster.description = fmt::format("{} nodes imported from AutoDist", machines.size());
  cluster.file = file;
  cluster.devices.insert(*found);
  LinkClass pcie;
  pcie.name = "pcie";
  pcie.bandwidth = BytesPerSecond{15.75e9};  // 8 GT/s x 16 lanes x 128/130
  pcie.efficiency = 0.76;                    // 12 GB/s, NCCL's constant for Gen3 x16
  pcie.latency = Seconds{1e-6};
  cluster.links.emplace(pcie.name, pcie);
  for (const auto& machine : machines) add_machine(cluster, machine, device);
  add_sources(cluster, machines, file);
  return cluster;
}

}  // namespace simsync
