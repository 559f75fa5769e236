// A trace in our own form, with all that an import makes of it: the model must be one that the reader takes.
#include "models/trace/importers.hpp"
#include "tests/fuzz/harness.hpp"

extern "C" int SIMSYNC_FUZZ_TARGET(const std::uint8_t* data, std::size_t size) {
  return simsync::fuzz::run(data, size, [](const std::string& text) {
    const auto imported = simsync::import_own(simsync::parse_trace(text, "trace.csv"));
    const auto traced = simsync::layers_of(imported.trace, imported.hints);
    const simsync::TraceOrigin origin{.name = "m", .device = "d", .framework = "f", .source = "s"};
    (void)simsync::parse_model(simsync::model_text(traced, origin), "m.yaml");
  });
}
