// Clusters from files: presets, the user's own, and other systems' resource files.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "platforms/cluster.hpp"

namespace simsync {

/// Reads a cluster file (format: platforms/README.md). @throws InputError with every finding.
Cluster load_cluster(const std::string& path);
/// The same from text; `file` stands for it in messages. @throws InputError with every finding.
Cluster parse_cluster(const std::string& text, const std::string& file);
/// `name_or_path` as given to --cluster. @throws InputError naming the closest known cluster.
Cluster find_cluster(const std::string& name_or_path);
/// Names of the built-in presets, sorted.
std::vector<std::string> known_clusters();
/// The same cluster with at least the nodes that `workers` GPUs need: the last GPU group grows. A preset
/// describes a node and the network; this says how many of them there are. Groups without GPUs keep their size.
/// @throws PlanError when no group has GPUs, when that group has no network, or beyond kMaxNodes nodes.
Cluster grown_to(Cluster cluster, int workers);
/// Sets one number by name, as `--set link.ethernet.per_flow_cap=10Gbps` does. Keys: platforms/README.md.
/// `none` removes an optional number; `group.*.` in place of a group's name sets all groups. The cluster is unchanged
/// when this throws.
/// @throws InputError naming the closest known key, or saying why the value does not fit.
void set_parameter(Cluster& cluster, const std::string& key, const std::string& value);
/// The same for several, at the cost of one. @throws InputError for the first that does not fit.
void set_parameters(Cluster& cluster, const std::vector<std::pair<std::string, std::string>>& values);
/// The inverse: the key of every number of this cluster, sorted.
std::vector<std::string> parameter_keys(const Cluster& cluster);
/// Every key that set_parameter takes: parameter_keys, and those that set a number of all groups.
std::vector<std::string> settable_keys(const Cluster& cluster);
/// The value of one key as set_parameter takes it; `none` for an absent optional number. @throws InputError.
std::string parameter_text(const Cluster& cluster, const std::string& key);
/// What `simsync import` calls AutoDist's format.
inline constexpr const char* kAutodistFormat = "autodist-resource-spec";
/// AutoDist's resource specification (nodes with address, gpus, cpus, chief, network_bandwidth in Gbit/s).
/// Nodes keep the file's order; the GPU model is `device` (of platforms/devices.yaml) because the format does not
/// name one. What had to be assumed, such as 1 Gbit/s where no bandwidth is given, is told in `sources`.
/// @throws InputError with every finding, or naming the closest known device.
Cluster import_autodist_resource_spec(const std::string& path, const std::string& device);
/// The same from text; `file` stands for it in messages, and its name becomes the cluster's.
Cluster parse_autodist_resource_spec(const std::string& text, const std::string& file, const std::string& device);
/// The cluster as a file that load_cluster reads back to an equal value.
std::string to_yaml(const Cluster& cluster);
/// Devices that any cluster file may name without describing them (platforms/devices.yaml).
std::map<std::string, DeviceClass> device_catalogue();

}  // namespace simsync
