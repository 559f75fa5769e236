// What must hold between the parts of a cluster.
#pragma once
#include <string>
#include <vector>

#include "platforms/cluster.hpp"

namespace simsync {

struct Finding {
  std::string key;  ///< where, as in the file: `groups[0].nic_link`
  std::string message;
  std::string help;
};

/// Everything that contradicts itself in `cluster`: names of links and devices that it does not describe, parts
/// that other parts need, too many nodes. Empty for every cluster that load_cluster returns.
std::vector<Finding> check(const Cluster& cluster);

}  // namespace simsync
