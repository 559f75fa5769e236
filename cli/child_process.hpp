// Another program of this project as a child process.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace simsync {

/// Exit code of a child whose program could not be started.
inline constexpr int kCannotStart = 127;

/// A file in memory that a child process inherits and finds under path(); nothing of it stays when both have ended.
class SharedFile {
public:
  /// @throws CapabilityError when the system has none.
  explicit SharedFile(const char* name);
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;
  [[nodiscard]] std::string path() const;
  [[nodiscard]] int descriptor() const { return file_; }

private:
  int file_;
};

/// Where what a child writes goes; by default where this process writes.
struct ChildOutput {
  std::function<void(const std::string& line)> line;  ///< called for each line of its standard output
  const SharedFile* messages = nullptr;               ///< takes its standard error
};

/// Runs `command`, a path and its arguments, until it ends. The child ends with this process, and is told SIGINT,
/// SIGTERM and SIGHUP.
/// @return how it ended, as waitpid says. @throws CapabilityError when there is no process to be had; Interrupted when
/// a signal asked this process to stop.
int run_child(const std::vector<std::string>& command, const ChildOutput& output = {});

}  // namespace simsync
