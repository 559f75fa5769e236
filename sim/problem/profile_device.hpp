// The device of a profile that the user names. Private to sim/problem.
#pragma once
#include <string>
#include <vector>

#include "platforms/cluster.hpp"

namespace simsync::detail {

/// `profile` as in `--set profile=`. A device that neither the cluster nor the catalogue knows leaves the proportions
/// of the layers only: `notes` gets a line. @throws InputError when its name is a known one misspelt.
void check_profile_device(const std::string& profile, const Cluster& cluster, std::vector<std::string>& notes);

}  // namespace simsync::detail
