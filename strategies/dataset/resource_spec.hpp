// Resource specifications of AutoDist: which machines a strategy runs on.
#pragma once
#include <string>
#include <vector>

#include "platforms/cluster.hpp"

namespace simsync {

/// The nodes of `workers` and those without GPUs, as AutoDist reads them; an address is `node3`. The format knows one
/// bandwidth of each node: that of its NICs together.
std::string resource_spec_text(const Cluster& cluster, int workers);

/// Addresses of the nodes in the order of the file, and how many GPUs each has. `file` stands for the text in messages.
struct ResourceNode {
  std::string address;
  int gpus = 0;
};
/// @throws InputError with every finding. Keys that say neither are not looked at.
std::vector<ResourceNode> parse_resource_nodes(const std::string& text, const std::string& file);

}  // namespace simsync
