// Measurements in any of the formats that calibrate reads; what is accepted can be simulated.
#include <cmath>

#include "tests/fuzz/harness.hpp"
#include "validate/calibrate/readers.hpp"

extern "C" int SIMSYNC_FUZZ_TARGET(const std::uint8_t* data, std::size_t size) {
  return simsync::fuzz::run(data, size, [](const std::string& text) {
    for (const auto& probe : simsync::parse_probes(text, "measured.txt", {.ranks = 4, .where = {}})) {
      SIMSYNC_ASSERT(probe.ranks >= 1 && probe.count >= 1);
      SIMSYNC_ASSERT(probe.bytes >= 0.0 && std::isfinite(probe.bytes));
      SIMSYNC_ASSERT(probe.compute >= simsync::Seconds{0.0} && std::isfinite(probe.compute.value()));
      SIMSYNC_ASSERT(probe.measured > simsync::Seconds{0.0} && std::isfinite(probe.measured.value()));
    }
  });
}
