// A model and a strategy, separated by a line of `%`, compiled to a plan. Large accepted inputs are left out.
#include "models/profile.hpp"
#include "sim/plan/compile.hpp"
#include "strategies/reader.hpp"
#include "tests/fuzz/harness.hpp"

namespace {

constexpr std::size_t kMostLayers = 200;
constexpr std::int64_t kMostParameters = 1'000'000;

void compile_both(const std::string& model_text, const std::string& strategy_text) {
  using namespace simsync;
  const Model model = parse_model(model_text, "model.yaml");
  if (model.layer_count() > kMostLayers || model.parameter_count() > kMostParameters) return;
  const Cluster& cluster = fuzz::small_cluster();
  const BuildRequest request{.model = model, .cluster = cluster, .workers = 4, .batch = 2, .options = {}, .seed = 1};
  const auto builders = known_builders();
  const bool named = std::find(builders.begin(), builders.end(), strategy_text) != builders.end();
  const Strategy strategy =
      named ? build_strategy(strategy_text, request) : parse_strategy(strategy_text, "strategy.yaml", request);
  const DeviceClass& device = cluster.devices.at("X");
  const Roofline roofline{.peak = device.peak.at("fp32"), .memory = device.memory_bandwidth};
  (void)compile(model, estimate_profile(model, roofline, 2), cluster, strategy);
}

}  // namespace

extern "C" int SIMSYNC_FUZZ_TARGET(const std::uint8_t* data, std::size_t size) {
  return simsync::fuzz::run(data, size, [](const std::string& text) {
    const std::size_t border = text.find("\n%\n");
    if (border == std::string::npos || text.find("extends") != std::string::npos) return;
    compile_both(text.substr(0, border + 1), text.substr(border + 3));
  });
}
