// A trace of PyTorch's profiler, which is read from a file.
#include "models/trace/importers.hpp"
#include "tests/fuzz/harness.hpp"
#include "tests/support/scratch_file.hpp"

extern "C" int SIMSYNC_FUZZ_TARGET(const std::uint8_t* data, std::size_t size) {
  return simsync::fuzz::run(data, size, [](const std::string& text) {
    const simsync::test::ScratchFile file(text);
    const auto imported = simsync::import_kineto(file.path());
    const auto traced = simsync::layers_of(imported.trace, imported.hints);
    const simsync::TraceOrigin origin{.name = "m", .device = "d", .framework = "f", .source = "s"};
    (void)simsync::parse_model(simsync::model_text(traced, origin), "m.yaml");
  });
}
