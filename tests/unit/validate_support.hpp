// A study beside its reference table in a folder of its own, removed at the end.
#pragma once
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/file.hpp"
#include "tests/support/error_of.hpp"
#include "validate/study.hpp"

namespace simsync::test {

/// The table lies in the current folder's `table.csv` of a fresh folder; studies are named `study.yaml`.
class StudyFolder {
public:
  explicit StudyFolder(const std::string& table)
      : before_(std::filesystem::current_path()),
        path_(std::filesystem::temp_directory_path() /
              ("simsync-study-" + std::to_string(::getpid()) + "-" + std::to_string(counter()++))) {
    std::filesystem::create_directories(path_);
    std::filesystem::current_path(path_);
    write_file("table.csv", table);
  }
  StudyFolder(const StudyFolder&) = delete;
  StudyFolder& operator=(const StudyFolder&) = delete;
  ~StudyFolder() {
    std::error_code ignored;
    std::filesystem::current_path(before_, ignored);
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] Study parse(const std::string& text) const { return parse_study(text, "study.yaml"); }

private:
  static int& counter() {
    static int next = 0;
    return next;
  }
  std::filesystem::path before_;
  std::filesystem::path path_;
};

}  // namespace simsync::test
