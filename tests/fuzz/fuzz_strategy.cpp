// A strategy file for a small model and cluster; what is accepted is written and must read back equal.
#include "strategies/reader.hpp"
#include "tests/fuzz/harness.hpp"

extern "C" int SIMSYNC_FUZZ_TARGET(const std::uint8_t* data, std::size_t size) {
  return simsync::fuzz::run(data, size, [](const std::string& text) {
    const simsync::BuildRequest request{.model = simsync::fuzz::small_model(),
                                        .cluster = simsync::fuzz::small_cluster(),
                                        .workers = 4,
                                        .batch = 2,
                                        .options = {},
                                        .seed = 1};
    const auto strategy = simsync::parse_strategy(text, "strategy.yaml", request);
    const auto again = simsync::parse_strategy(simsync::to_yaml(strategy, request.model), "again.yaml", request);
    SIMSYNC_ASSERT(again == strategy);
  });
}
