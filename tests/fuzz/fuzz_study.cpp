// A study file about a small table, and the cases that follow from it.
#include <cstdlib>
#include <filesystem>

#include "base/file.hpp"
#include "tests/fuzz/harness.hpp"
#include "validate/cases.hpp"

namespace {

/// A folder with `table.csv`, made once.
const std::string& folder() {
  static const std::string kFolder = [] {
    std::string pattern = (std::filesystem::temp_directory_path() / "simsync-fuzz-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    simsync::write_file(pattern + "/table.csv",
                        "id,model,workers,batch,time\na,vgg16,1,32,0.5\nb,vgg16,2,32,0.75\nc,alexnet,4,64,\n");
    return pattern;
  }();
  return kFolder;
}

}  // namespace

extern "C" int SIMSYNC_FUZZ_TARGET(const std::uint8_t* data, std::size_t size) {
  return simsync::fuzz::run(data, size, [](const std::string& text) {
    (void)simsync::cases_of(simsync::parse_study(text, folder() + "/study.yaml"));
  });
}
