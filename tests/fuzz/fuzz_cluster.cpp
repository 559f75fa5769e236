// A cluster file; what is accepted is written and must read back equal.
#include "tests/fuzz/harness.hpp"

extern "C" int SIMSYNC_FUZZ_TARGET(const std::uint8_t* data, std::size_t size) {
  return simsync::fuzz::run(data, size, [](const std::string& text) {
    const simsync::Cluster cluster = simsync::parse_cluster(text, "cluster.yaml");
    SIMSYNC_ASSERT(simsync::parse_cluster(simsync::to_yaml(cluster), "again.yaml") == cluster);
  });
}
