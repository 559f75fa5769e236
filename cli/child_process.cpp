#include "cli/child_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/error.hpp"
#include "base/interrupted.hpp"

namespace simsync {
namespace {

volatile std::sig_atomic_t child_process = 0;
volatile std::sig_atomic_t asked_to_stop = 0;

/// While it lives, what asks this process to stop is told to the child, which ends in order.
class SignalsToChild {
public:
  explicit SignalsToChild(pid_t child) {
    asked_to_stop = 0;
    child_process = child;
    struct sigaction action {};
    action.sa_handler = [](int signal) {
      asked_to_stop = signal;
      ::kill(child_process, signal);
    };
    for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &action, &before_[i]);
  }
  ~SignalsToChild() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  }
  SignalsToChild(const SignalsToChild&) = delete;
  SignalsToChild& operator=(const SignalsToChild&) = delete;

private:
  static constexpr std::array<int, 3> kSignals{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, 3> before_{};
};

/// Ends that nobody uses are closed by whoever has them.
struct Pipe {
  int read = -1;
  int write = -1;

  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw CapabilityError(fmt::format("pipe: {}", std::strerror(errno)));
    read = ends[0];
    write = ends[1];
  }
  ~Pipe() {
    ::close(read);
    close_write();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_write() {
    if (write >= 0) ::close(write);
    write = -1;
  }
};

[[noreturn]] void become(const std::vector<std::string>& command, pid_t parent, int out, int err) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  if (out >= 0) ::dup2(out, STDOUT_FILENO);
  if (err >= 0) ::dup2(err, STDERR_FILENO);
  std::vector<char*> argv;
  for (const auto& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execv(argv.front(), argv.data());
  ::_exit(kCannotStart);
}

void read_lines(int from, const std::function<void(const std::string& line)>& told) {
  std::string text;
  std::array<char, 65536> buffer{};
  while (true) {
    const ssize_t n = ::read(from, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // a line that was cut off is none
    text.append(buffer.data(), static_cast<std::size_t>(n));
    for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
      told(text.substr(0, end));
      text.erase(0, end + 1);
    }
  }
}

}  // namespace

SharedFile::SharedFile(const char* name) : file_(::memfd_create(name, 0)) {
  if (file_ < 0) throw CapabilityError(fmt::format("cannot make a file in memory: {}", std::strerror(errno)));
}

SharedFile::~SharedFile() {
  ::close(file_);
}

std::string SharedFile::path() const {
  return fmt::format("/proc/self/fd/{}", file_);
}

int run_child(const std::vector<std::string>& command, const ChildOutput& output) {
  Pipe pipe;
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) throw CapabilityError(fmt::format("fork: {}", std::strerror(errno)));
  if (child == 0)
    become(command, parent, output.line ? pipe.write : -1,
           output.messages != nullptr ? output.messages->descriptor() : -1);
  pipe.close_write();
  const SignalsToChild signals(child);
  if (output.line) read_lines(pipe.read, output.line);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (asked_to_stop != 0) throw Interrupted(fmt::format("stopped by {}", strsignal(asked_to_stop)), asked_to_stop);
  return status;
}

}  // namespace simsync
