// Files for a test that reads some, gone when the test has ended.
#pragma once
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/error.hpp"
#include "base/file.hpp"

namespace simsync::test {

class ScratchFolder {
public:
  ScratchFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "simsync-file-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  void write(const std::filesystem::path& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    write_file((path_ / name).string(), text);
  }

private:
  std::filesystem::path path_;
};

class ScratchFile {
public:
  explicit ScratchFile(const std::string& text, const std::string& name = "trace.json")
      : path_((folder_.path() / name).string()) {
    folder_.write(name, text);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

private:
  ScratchFolder folder_;
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
