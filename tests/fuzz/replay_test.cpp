// Seeds and crashers through every harness, without libFuzzer. A file is meant for all targets or, in a folder
// named after one, for that.
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "tests/support/catch.hpp"

extern "C" {
int fuzz_model(const std::uint8_t* data, std::size_t size);
int fuzz_cluster(const std::uint8_t* data, std::size_t size);
int fuzz_strategy(const std::uint8_t* data, std::size_t size);
int fuzz_study(const std::uint8_t* data, std::size_t size);
int fuzz_csv(const std::uint8_t* data, std::size_t size);
int fuzz_compile(const std::uint8_t* data, std::size_t size);
int fuzz_calibration(const std::uint8_t* data, std::size_t size);
int fuzz_probes(const std::uint8_t* data, std::size_t size);
int fuzz_resources(const std::uint8_t* data, std::size_t size);
int fuzz_trace(const std::uint8_t* data, std::size_t size);
int fuzz_kineto(const std::uint8_t* data, std::size_t size);
}

namespace {

using Target = int (*)(const std::uint8_t*, std::size_t);

std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
    if (entry.is_regular_file()) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<std::string> inputs_of(const std::string& target) {
  const std::string root = SIMSYNC_TESTS_FOLDER;
  std::vector<std::string> folders{root + "/fuzz/seeds/" + target, root + "/fuzz/crashers/" + target};
  if (target == "model") folders.push_back(root + "/../models/zoo");
  if (target == "cluster") folders.push_back(root + "/../platforms/presets");
  if (target == "strategy") folders.push_back(root + "/../strategies/presets");
  if (target == "study") folders.push_back(root + "/../validate/studies");
  if (target == "calibration") folders.push_back(root + "/../validate/calibrations");
  if (target == "csv" || target == "probes") folders.push_back(root + "/../validate/reference");
  std::vector<std::string> paths;
  for (const auto& folder : folders) {
    const auto more = files_below(folder);
    paths.insert(paths.end(), more.begin(), more.end());
  }
  return paths;
}

}  // namespace

TEST_CASE("seeds and crashers are read without a crash", "[fuzz]") {
  const std::vector<std::pair<std::string, Target>> targets{{"model", fuzz_model},
                                                            {"cluster", fuzz_cluster},
                                                            {"strategy", fuzz_strategy},
                                                            {"study", fuzz_study},
                                                            {"csv", fuzz_csv},
                                                            {"compile", fuzz_compile},
                                                            {"calibration", fuzz_calibration},
                                                            {"probes", fuzz_probes},
                                                            {"resources", fuzz_resources},
                                                            {"trace", fuzz_trace},
                                                            {"kineto", fuzz_kineto}};
  for (const auto& [name, target] : targets) {
    DYNAMIC_SECTION(name) {
      const auto paths = inputs_of(name);
      CHECK(!paths.empty());
      for (const auto& path : paths) {
        INFO(path);
        const std::string text = simsync::read_file(path);
        CHECK(target(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()) == 0);
      }
    }
  }
}
