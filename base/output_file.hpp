// Writing files so that nobody ever finds half of one.
#pragma once
#include <memory>
#include <ostream>
#include <string>

namespace simsync {

/// Where writing to `path` ends up: what symbolic links lead to, which need not exist yet. A path into /proc, such as
/// that of /dev/stdout, stays.
std::string target_of(const std::string& path);
/// Whether `path` is written to as it stands: a pipe, a device or an open file of this process.
/// @throws InputError when it is a folder.
bool is_written_in_place(const std::string& path);

/// New content of `path`, which has its old content until commit(). An existing file keeps its permissions, and its
/// owner where the system allows; a symbolic link stays and its target is replaced. What is not committed leaves
/// nothing behind. Where the file system knows files without a name this holds for a killed process too, but for the
/// moment in which an existing file is replaced; else a killed process leaves a hidden file beside the target
/// (`.NAME.PROCESS-N.part`), which remove_left_files() takes away.
class Replacement {
public:
  /// @throws InputError when `path` cannot be written.
  explicit Replacement(const std::string& path);
  ~Replacement();
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;
  std::ostream& stream();
  /// @throws InputError when something could not be written, with the system's reason; `path` is then as it was.
  void commit();

private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A file that grows: what is appended is there at once.
class GrowingFile {
public:
  /// `path` has the content `begin` and is open. @throws InputError when it cannot be written.
  GrowingFile(const std::string& path, const std::string& begin);
  ~GrowingFile();
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;
  /// @throws InputError with the system's reason.
  void append(const std::string& text);

private:
  std::string path_;
  int file_ = -1;
};

/// Removes what killed processes left behind in `folder` and below: temporary files whose process is gone
/// from this machine: nobody else may be writing there. @throws InputError when one cannot be removed, or `folder` not be
/// read.
void remove_left_files(const std::string& folder);

/// For a handler of a signal that ends the process: removes a temporary file that has a name.
void remove_unfinished_file() noexcept;

}  // namespace simsync
