#include "cli/measure_probes.hpp"

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
#include "base/file.hpp"
#include "base/interrupted.hpp"
#include "cli/commands.hpp"
#include "cli/failure.hpp"
#include "cli/forward.hpp"
#include "platforms/reader.hpp"
#include "validate/calibrate/readers.hpp"

namespace simsync {
namespace {

constexpr int kCannotStart = 127;

/// A file in memory that a child process inherits and finds under path(); nothing of it stays when both have ended.
class SharedFile {
public:
  explicit SharedFile(const char* name) : file_(::memfd_create(name, 0)) {
    if (file_ < 0) throw CapabilityError(fmt::format("cannot make a file in memory: {}", std::strerror(errno)));
  }
  ~SharedFile() { ::close(file_); }
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;
  [[nodiscard]] std::string path() const { return fmt::format("/proc/self/fd/{}", file_); }

private:
  int file_;
};

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

[[noreturn]] void become(const std::vector<std::string>& command, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  std::vector<char*> argv;
  for (const auto& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execv(argv.front(), argv.data());
  ::_exit(kCannotStart);
}

/// @return how it ended, as waitpid says.
int run(const std::vector<std::string>& command) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) throw CapabilityError(fmt::format("fork: {}", std::strerror(errno)));
  if (child == 0) become(command, parent);
  const SignalsToChild signals(child);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (asked_to_stop != 0) throw Interrupted(fmt::format("stopped by {}", strsignal(asked_to_stop)), asked_to_stop);
  return status;
}

void expect_success(const std::string& program, int status) {
  if (WIFSIGNALED(status))
    throw RunError(
        fmt::format("{} was ended by signal {} ({})", program, WTERMSIG(status), strsignal(WTERMSIG(status))));
  const int code = WEXITSTATUS(status);
  if (code == kCannotStart) throw CapabilityError(fmt::format("calibrate --measure needs {}", program));
  if (code != 0) throw WorkerError({"error: nothing was calibrated, because the measurement failed", ExitCode{code}});
}

}  // namespace

MeasuredProbes measure_probes(const TestbedFlags& flags, const std::string& keep) {
  const SharedFile probes("probes.csv");
  const SharedFile described("cluster.yaml");
  const std::string rows = keep.empty() ? probes.path() : keep;
  const std::string cluster = described.path();
  const std::string program = hardware_program();
  std::vector<std::string> command{program, kProbe, "--csv", rows, "--cluster-out", cluster};
  for (auto& argument : arguments_of(flags)) command.push_back(std::move(argument));
  expect_success(program, run(command));
  const std::string name = keep.empty() ? "measured" : keep;
  return {load_cluster(cluster), read_table(CsvTable::parse(read_output(rows), name), {})};
}

}  // namespace simsync
