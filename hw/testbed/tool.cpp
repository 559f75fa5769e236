#include "hw/testbed/tool.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "base/error.hpp"
#include "base/parse_units.hpp"

namespace simsync::testbed {
namespace {

/// A file in memory, removed with the object.
class MemoryFile {
public:
  explicit MemoryFile(const std::string& text) : fd_(::memfd_create("simsync", MFD_CLOEXEC)) {
    if (fd_ < 0 || ::write(fd_, text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
        ::lseek(fd_, 0, SEEK_SET) != 0) {
      const int error = errno;
      if (fd_ >= 0) ::close(fd_);
      throw CapabilityError(fmt::format("the testbed cannot make a file in memory: {}", std::strerror(error)));
    }
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] std::string text() const {
    std::string out;
    char buffer[4096];
    ssize_t got = 0;
    for (off_t at = 0; (got = ::pread(fd_, buffer, sizeof buffer, at)) > 0; at += got)
      out.append(buffer, static_cast<std::size_t>(got));
    return out;
  }

private:
  int fd_;
};

/// The search path of an ordinary user lacks the folders where `tc` lies.
std::string find_tool(const std::string& tool) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(fmt::format("{}:/usr/sbin:/sbin:/usr/bin:/bin", path ? path : ""));
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string candidate = folder + "/" + tool;
    if (!folder.empty() && ::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  throw CapabilityError(fmt::format("the testbed needs the program '{}' (Debian package iproute2)", tool));
}

/// The exit status; standard error goes to `messages`.
int run(const std::vector<std::string>& words, const MemoryFile& input, const MemoryFile& messages) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input.fd(), STDIN_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, messages.fd(), STDERR_FILENO);
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw CapabilityError(fmt::format("cannot run {}: {}", words[0], std::strerror(error)));
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return 0;  // a caller that ignores SIGCHLD: the messages alone tell
  return status;
}

/// `ip` ends with "Command failed -:3", the line that it refused; the message stands before it.
std::string refusal(const std::string& tool, const std::string& messages, const std::vector<std::string>& commands) {
  const std::string marker = "Command failed -:";
  const auto at = messages.rfind(marker);
  std::string said = messages.substr(0, at);
  while (!said.empty() && said.back() == '\n') said.pop_back();
  std::string command = fmt::format("{} -batch", tool);
  if (at != std::string::npos) {
    const std::string digits = messages.substr(at + marker.size());
    const auto line = parse_integer(std::string_view(digits).substr(0, digits.find_first_not_of("0123456789")));
    if (line && *line >= 1 && *line <= static_cast<std::int64_t>(commands.size()))
      command = fmt::format("{} {}", tool, commands[static_cast<std::size_t>(*line - 1)]);
  }
  return fmt::format("the testbed cannot be built: '{}': {}", command, said);
}

}  // namespace

void run_batch(const std::string& tool, const std::string& netns, const std::vector<std::string>& commands) {
  using Words = std::vector<std::string>;
  const std::string path = find_tool(tool);
  const Words words = netns.empty() ? Words{path, "-batch", "-"} : Words{path, "-n", netns, "-batch", "-"};
  std::string text;
  for (const std::string& command : commands) text += command + "\n";
  const MemoryFile input(text);
  const MemoryFile messages("");
  const int status = run(words, input, messages);
  if (status == 0) return;
  std::string said = messages.text();
  if (said.empty()) said = fmt::format("ended with status {}", status);
  throw CapabilityError(refusal(tool, said, commands));
}

}  // namespace simsync::testbed
