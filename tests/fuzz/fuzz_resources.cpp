// An AutoDist resource specification; the cluster that it becomes is written and must read back equal.
#include "tests/fuzz/harness.hpp"

extern "C" int SIMSYNC_FUZZ_TARGET(const std::uint8_t* data, std::size_t size) {
  return simsync::fuzz::run(data, size, [](const std::string& text) {
    const auto cluster = simsync::parse_autodist_resource_spec(text, "resources.yml", "T4");
    SIMSYNC_ASSERT(simsync::parse_cluster(simsync::to_yaml(cluster), "again.yaml") == cluster);
  });
}
