#include "sim/problem/request_cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "models/precision.hpp"
#include "platforms/reader.hpp"
#include "platforms/topology.hpp"

namespace simsync::detail {
namespace {

std::vector<NodeGroup> gpu_groups(const Cluster& cluster) {
  std::vector<NodeGroup> groups;
  for (const NodeGroup& group : cluster.groups)
    if (group.gpus > 0 && group.count > 0) groups.push_back(group);
  if (groups.empty()) throw PlanError(fmt::format("cluster '{}' has no GPUs", cluster.name));
  return groups;
}

int gpu_nodes(const Cluster& cluster) {
  int count = 0;
  for (const NodeGroup& group : cluster.groups)
    if (group.gpus > 0) count += group.count;
  return count;
}

/// The group that GPU node number `node` is of; nodes beyond the last are like the last.
std::size_t group_of_gpu_node(const std::vector<NodeGroup>& groups, int node) {
  std::size_t group = 0;
  for (; group + 1 < groups.size() && node >= groups[group].count; ++group) node -= groups[group].count;
  return group;
}

/// The cluster's GPU nodes, in order, with the given numbers of GPUs each; hosts without GPUs stay.
void place(Cluster& cluster, const std::vector<int>& gpus_per_node) {
  const std::vector<NodeGroup> patterns = gpu_groups(cluster);
  const int asked = static_cast<int>(gpus_per_node.size());
  if (asked > gpu_nodes(cluster) && patterns.back().nic_link.empty())
    throw PlanError(fmt::format("placement asks for {} nodes: cluster '{}' has {} and its last has no network", asked,
                                cluster.name, gpu_nodes(cluster)));
  std::vector<NodeGroup> groups;
  std::size_t before = patterns.size();
  for (int node = 0; node < asked; ++node) {
    const std::size_t which = group_of_gpu_node(patterns, node);
    const NodeGroup& pattern = patterns[which];
    const int gpus = gpus_per_node[static_cast<std::size_t>(node)];
    if (gpus > pattern.gpus)
      throw PlanError(fmt::format("entry {} of the placement asks for {} GPUs on a node of '{}' that has {}", node + 1,
                                  gpus, cluster.name, pattern.gpus));
    if (which == before && groups.back().gpus == gpus) {
      ++groups.back().count;
      continue;
    }
    before = which;
    groups.push_back(pattern);
    groups.back().name = fmt::format("{}-{}", pattern.name, groups.size());
    groups.back().count = 1;
    groups.back().gpus = gpus;
    groups.back().nics = nics_in_use(pattern, gpus);
  }
  for (const NodeGroup& group : cluster.groups)
    if (group.gpus == 0) groups.push_back(group);
  cluster.groups = std::move(groups);
}

/// The last node that takes part computes `factor` times slower.
void slow_one(Cluster& cluster, int workers, double factor) {
  int before = cluster.workers(workers).back().node;  // nodes of earlier groups are counted off
  auto group = cluster.groups.begin();
  for (; before >= group->count; ++group) before -= group->count;
  NodeGroup straggler = *group;
  straggler.name += "-straggler";
  straggler.count = 1;
  straggler.compute_slowdown *= factor;
  NodeGroup after = *group;
  after.name += "-rest";
  after.count = group->count - before - 1;
  group->count = before;
  auto at = group + 1;
  at = cluster.groups.insert(at, straggler) + 1;
  if (after.count > 0) cluster.groups.insert(at, after);
  std::erase_if(cluster.groups, [](const NodeGroup& one) { return one.count == 0; });
}

void set_parameters(Cluster& cluster, const Settings& settings) {
  for (const auto& [key, value] : settings.cluster) {
    try {
      set_parameter(cluster, key, value);
    } catch (const InputError& e) {
      Diagnostic finding = e.diagnostics().front();
      finding.message = "--set " + finding.message;
      throw InputError(std::move(finding));
    }
  }
}

}  // namespace

Cluster cluster_of(const PredictRequest& request, Cluster cluster, const Settings& settings,
                   std::vector<std::string>& notes) {
  set_parameters(cluster, settings);
  const int listed = gpu_nodes(cluster);
  if (!settings.placement.empty()) {
    place(cluster, settings.placement);
    const int placed = std::accumulate(settings.placement.begin(), settings.placement.end(), 0);
    if (request.workers != placed)
      throw InputError(fmt::format("--set placement={} places {} workers, --workers says {}",
                                   fmt::join(settings.placement, ","), placed, request.workers));
  }
  cluster = grown_to(std::move(cluster), request.workers);
  if (const int used = gpu_nodes(cluster); used > listed)
    notes.push_back(fmt::format("cluster '{}' lists {} node{} with GPUs, {} take part: the others are like its last",
                                cluster.name, listed, listed == 1 ? "" : "s", used));
  if (settings.straggler) slow_one(cluster, request.workers, *settings.straggler);
  return cluster;
}

Roofline roofline_of(const DeviceClass& device, const std::string& precision) {
  const auto peak = device.peak.find(precision);
  if (peak == device.peak.end()) {
    std::vector<std::string> known;
    for (const auto& [name, rate] : device.peak) known.push_back(name);
    throw InputError(fmt::format("device '{}' has no peak rate for precision '{}'", device.name, precision),
                     fmt::format("it has {}", fmt::join(known, ", ")));
  }
  Roofline out;
  out.peak = peak->second;
  out.memory = device.memory_bandwidth;
  out.launch = device.launch;
  const auto efficiency = device.compute_efficiency.find(precision);
  if (efficiency != device.compute_efficiency.end()) out.compute_efficiency = efficiency->second;
  const auto unaligned = device.unaligned_efficiency.find(precision);
  if (unaligned != device.unaligned_efficiency.end()) out.unaligned_efficiency = unaligned->second;
  out.memory_efficiency = device.memory_efficiency;
  // Kernels of attention have elements of two bytes: fp8 is of other products alone.
  const auto half = device.peak.find(device.peak.contains("bf16") ? "bf16" : "fp16");
  if (device.attention_efficiency && has_half_activations(precision) && half != device.peak.end())
    out.attention = *device.attention_efficiency * half->second;
  out.half_efficiency = device.half_efficiency;
  return out;
}

Seconds estimated_step(const Cluster& cluster, const Model& model, const ProfileRequest& asked) {
  return make_profile(model, {.device = asked.device,
                              .precision = asked.precision,
                              .batch = asked.batch,
                              .roofline = roofline_of(cluster.devices.at(asked.device), asked.precision),
                              .profile = "roofline"})
      .step();
}

void relate_devices(Cluster& cluster, const Model& model, const ProfileRequest& first) {
  ProfileRequest other = first;
  for (NodeGroup& group : cluster.groups) {
    other.device = group.device;
    if (group.gpus == 0 || group.device == first.device) continue;
    if (model.layer_of_unknown_work())
      throw InputError(
          fmt::format("model '{}' does not tell the work of its layers, so how fast {} is beside {} is not known",
                      model.name(), group.device, first.device),
          fmt::format("its profile holds for {}: use a cluster of that device alone", first.device));
    group.compute_slowdown *= estimated_step(cluster, model, other) / estimated_step(cluster, model, first);
  }
}

}  // namespace simsync::detail
