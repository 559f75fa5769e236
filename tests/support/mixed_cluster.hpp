// A cluster of two kinds of devices, as a file.
#pragma once
#include <filesystem>
#include <string>

#include "base/file.hpp"

namespace simsync::test {

/// Two nodes of two GPUs each, on one network.
inline std::string mixed_cluster_file(const std::string& first, const std::string& second) {
  const auto group = [](const std::string& name, const std::string& device) {
    return "  - {name: " + name + ", device: " + device +
           ", gpus: 2, count: 1, nic_link: net, fabric: {pcie_link: pcie}}\n";
  };
  const std::string path =
      (std::filesystem::temp_directory_path() / ("simsync-" + first + "-" + second + ".yaml")).string();
  write_file(path,
             "schema: simsync/cluster/v1\nname: mixed\ndescription: two devices\nsources: [made up]\nprecision: fp32\n"
             "links:\n  net: {bandwidth: 100Gbps, latency: 2us}\n  pcie: {bandwidth: 12GB/s, latency: 1us}\n"
             "groups:\n" +
                 group("first", first) + group("second", second));
  return path;
}

}  // namespace simsync::test
