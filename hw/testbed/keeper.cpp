#include "hw/testbed/keeper.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.hpp"
#include "hw/testbed/removal.hpp"

namespace simsync::testbed {
namespace {

// The C library has these since 2.36 only.
int pidfd_open(pid_t pid) {
  return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
}
void pidfd_kill(int process) {
  ::syscall(SYS_pidfd_send_signal, process, SIGKILL, nullptr, 0);
}

/// Waits until the process behind a descriptor has ended.
void wait_for_end(int process) {
  pollfd watched{process, POLLIN, 0};
  while (::poll(&watched, 1, -1) < 0 && errno == EINTR) {
  }
}

[[noreturn]] void keep(int owner, const std::vector<std::string>& names) {
  ::prctl(PR_SET_NAME, "simsync-keeper");
  const int watched = ::dup2(owner, 0);
  ::close_range(1, ~0U, 0);
  ::open("/dev/null", O_RDWR | O_CLOEXEC);  // 1 and 2 exist, should the C library have to complain
  ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (::chdir("/") != 0) ::_exit(1);
  wait_for_end(watched);
  remove_namespaces(names);
  ::_exit(0);
}

/// In the first of two forks: the keeper is the second, whose parent is gone at once.
[[noreturn]] void start_keeper(int owner, int report, const std::vector<std::string>& names) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  ::setsid();
  const pid_t pid = ::fork();
  if (pid == 0) keep(owner, names);
  const bool told = pid > 0 && ::write(report, &pid, sizeof pid) == sizeof pid;
  ::_exit(told ? 0 : 1);
}

[[noreturn]] void refuse(const char* what) {
  throw CapabilityError(fmt::format("the testbed cannot start its keeper process: {}: {}", what, std::strerror(errno)));
}

}  // namespace

Keeper::Keeper(const std::vector<std::string>& names) : owner_(::getpid()) {
  const int owner = pidfd_open(owner_);
  if (owner < 0) refuse("pidfd_open");
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) refuse("pipe");
  const pid_t child = ::fork();
  if (child < 0) refuse("fork");
  if (child == 0) start_keeper(owner, report[1], names);
  ::close(owner);
  ::close(report[1]);
  pid_t pid = 0;
  const bool told = ::read(report[0], &pid, sizeof pid) == sizeof pid;
  ::close(report[0]);
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  keeper_ = told ? pidfd_open(pid) : -1;
  if (keeper_ < 0) refuse("fork");
}

Keeper::~Keeper() {
  if (::getpid() == owner_) {
    pidfd_kill(keeper_);
    wait_for_end(keeper_);
  }
  ::close(keeper_);
}

}  // namespace simsync::testbed
