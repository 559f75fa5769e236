#include "platforms/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "base/error.hpp"
#include "platforms/gpu_mesh.hpp"

namespace simsync {
namespace {

template <class T>
std::vector<std::string> names(const std::map<std::string, T>& named) {
  std::vector<std::string> out;
  out.reserve(named.size());
  for (const auto& [name, value] : named) out.push_back(name);
  return out;
}

class Checker {
public:
  explicit Checker(const Cluster& cluster) : cluster_(cluster), links_(names(cluster.links)) {}

  std::vector<Finding> run() {
    const auto& groups = cluster_.groups;
    if (groups.empty()) note("groups", "a cluster needs at least one group of nodes");
    long long nodes = 0;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      nodes += groups[i].count;
      check_group(groups[i], fmt::format("groups[{}]", i));
    }
    if (nodes > kMaxNodes) note("groups", fmt::format("{} nodes in all: expected at most {}", nodes, kMaxNodes));
    const auto& precisions = known_precisions();
    if (std::find(precisions.begin(), precisions.end(), cluster_.precision) == precisions.end())
      note("precision", fmt::format("'{}' is not one of {}", cluster_.precision, fmt::join(precisions, ", ")),
           did_you_mean(cluster_.precision, precisions));
    check_names();
    for (const auto& [name, link] : cluster_.links) check_bucket(name, link.service);
    return std::move(findings_);
  }

private:
  void note(const std::string& key, const std::string& message, const std::string& help = {}) {
    findings_.push_back({key, message, help});
  }

  void check_link(const std::string& link, const std::string& key) {
    if (link.empty() || cluster_.links.contains(link)) return;
    std::string help = did_you_mean(link, links_);
    if (help.empty())
      help = links_.empty() ? "the file has no 'links'" : fmt::format("known links: {}", fmt::join(links_, ", "));
    note(key, fmt::format("unknown link '{}'", link), help);
  }

  void check_device(const NodeGroup& group, const std::string& key) {
    if (group.device.empty() != (group.gpus == 0)) {
      const bool missing = group.device.empty();
      note(key, missing ? fmt::format("missing key 'device': which GPU are the {}?", group.gpus)
                        : fmt::format("missing key 'gpus': how many {} are in a node?", group.device));
      return;
    }
    if (group.device.empty()) return;
    const auto device = cluster_.devices.find(group.device);
    if (device == cluster_.devices.end()) {
      note(key + ".device", fmt::format("unknown device '{}'", group.device),
           did_you_mean(group.device, names(cluster_.devices)));
    } else if (!device->second.peak.contains(cluster_.precision)) {
      note(key + ".device",
           fmt::format("device '{}' gives no peak for the precision '{}'", group.device, cluster_.precision),
           fmt::format("known precisions of this device: {}", fmt::join(names(device->second.peak), ", ")));
    }
    if (group.fabric.pcie_link.empty()) note(key, "missing key 'fabric.pcie_link': GPUs reach their host through it");
  }

  void check_group(const NodeGroup& group, const std::string& key) {
    check_device(group, key);
    const NodeFabric& fabric = group.fabric;
    check_link(fabric.gpu_link, key + ".fabric.gpu_link");
    check_mesh(group, key + ".fabric.gpu_mesh");
    check_link(fabric.pcie_link, key + ".fabric.pcie_link");
    check_link(fabric.switch_link, key + ".fabric.switch_link");
    check_link(fabric.socket_link, key + ".fabric.socket_link");
    check_link(fabric.memory_link, key + ".fabric.memory_link");
    check_link(group.nic_link, key + ".nic_link");
    if (fabric.switches_per_socket > 0 && fabric.socket_link.empty())
      note(key + ".fabric", "missing key 'socket_link': 'switches_per_socket' makes several sockets");
    if (group.nic_link.empty() && (cluster_.groups.size() > 1 || group.count > 1))
      note(key, "missing key 'nic_link': only a cluster of one machine has no network");
  }

  void check_mesh(const NodeGroup& group, const std::string& key) {
    if (group.fabric.gpu_mesh.empty()) return;
    try {
      (void)GpuMesh(group.fabric.gpu_mesh);
    } catch (const std::invalid_argument& e) {
      note(key, e.what());
    }
    if (group.fabric.gpu_link.empty()) note(key, "missing key 'gpu_link': which class are the links of the mesh?");
    if (group.gpus > GpuMesh::kMost)
      note(key, fmt::format("a node has {} GPUs: a mesh has at most {}", group.gpus, GpuMesh::kMost));
  }

  void check_bucket(const std::string& link, const PortService& service) {
    if (service.burst.count == 0 || service.burst_at_once.count <= service.burst.count) return;
    note(fmt::format("links.{}.burst_at_once", link),
         fmt::format("{} B at once of a burst of {} B: expected a part of 'burst'", service.burst_at_once.count,
                     service.burst.count));
  }

  void check_names() {
    const auto& groups = cluster_.groups;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (groups[i].name != groups[j].name) continue;
        note(fmt::format("groups[{}].name", i), fmt::format("a second group is called '{}'", groups[i].name));
        break;
      }
    }
  }

  const Cluster& cluster_;
  std::vector<std::string> links_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> check(const Cluster& cluster) {
  return Checker(cluster).run();
}

}  // namespace simsync
