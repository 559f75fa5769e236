// A model file, read and expanded.
#include "models/profile.hpp"
#include "tests/fuzz/harness.hpp"

extern "C" int SIMSYNC_FUZZ_TARGET(const std::uint8_t* data, std::size_t size) {
  return simsync::fuzz::run(data, size, [](const std::string& text) {
    if (text.find("extends") != std::string::npos) return;  // reads other files
    (void)simsync::parse_model(text, "model.yaml");
  });
}
