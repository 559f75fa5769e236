// Clusters from files: presets, the user's own, and other systems' resource files.
#pragma once
#include <string>
#include <vector>

#include "platforms/cluster.hpp"

namespace simsync {

/// Reads a cluster file (format: platforms/README.md). @throws InputError with every finding.
Cluster load_cluster(const std::string& path);
/// `name_or_path` as given to --cluster. @throws InputError naming the closest known cluster.
Cluster find_cluster(const std::string& name_or_path);
/// Names of the built-in presets, sorted.
std::vector<std::string> known_clusters();
/// The same cluster with at least the nodes that `workers` GPUs need: the last GPU group grows. A preset
/// describes a node and the network; this says how many of them there are.
Cluster grown_to(Cluster cluster, int workers);
/// Sets one number by name, as `--set link.ethernet.per_flow_cap=10Gbps` does. Keys: platforms/README.md.
/// @throws InputError naming the closest known key.
void set_parameter(Cluster& cluster, const std::string& key, const std::string& value);
/// The inverse: every key that set_parameter knows for this cluster, sorted.
std::vector<std::string> parameter_keys(const Cluster& cluster);
/// AutoDist's resource specification (nodes with address, gpus, cpus, chief, network_bandwidth in Gbit/s).
/// Nodes keep the file's order; the GPU model is `device` because the format does not name one.
Cluster import_autodist_resource_spec(const std::string& path, const std::string& device);
/// The cluster as a file that load_cluster reads back to an equal value.
std::string to_yaml(const Cluster& cluster);

}  // namespace simsync
