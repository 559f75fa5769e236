// A calibration; what is accepted is written and must read back equal, and lies over a small cluster or is refused.
#include "platforms/calibration.hpp"
#include "tests/fuzz/harness.hpp"

extern "C" int SIMSYNC_FUZZ_TARGET(const std::uint8_t* data, std::size_t size) {
  return simsync::fuzz::run(data, size, [](const std::string& text) {
    const auto calibration = simsync::parse_calibration(text, "calibration.yaml");
    SIMSYNC_ASSERT(simsync::parse_calibration(simsync::to_yaml(calibration), "again.yaml") == calibration);
    simsync::Cluster cluster = simsync::fuzz::small_cluster();
    simsync::apply(cluster, calibration);
    SIMSYNC_ASSERT(simsync::parse_cluster(simsync::to_yaml(cluster), "calibrated.yaml") == cluster);
  });
}
