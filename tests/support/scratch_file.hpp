// A file for a test that reads one, gone when the test has ended.
#pragma once
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/error.hpp"
#include "base/file.hpp"

namespace simsync::test {

class ScratchFile {
public:
  explicit ScratchFile(const std::string& text, const std::string& name = "trace.json") {
    std::string pattern = (std::filesystem::temp_directory_path() / "simsync-file-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    folder_ = pattern;
    write_file(path_ = pattern + "/" + name, text);
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

private:
  std::string folder_;
  std::string path_;
};

/// What went wrong, with the path of `file` as FILE.
template <class Read>
std::string refusal_of(const ScratchFile& file, const Read& read) {
  try {
    (void)read(file.path());
  } catch (const InputError& error) {
    std::string text = error.diagnostics().front().message;
    if (!error.diagnostics().front().help.empty()) text += " | " + error.diagnostics().front().help;
    const auto at = text.find(file.path());
    return at == std::string::npos ? text : text.replace(at, file.path().size(), "FILE");
  }
  return "none";
}

}  // namespace simsync::test
