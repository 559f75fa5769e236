#include "hw/run/awake_processors.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <sstream>

namespace simsync {
namespace {

std::string first_word(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string word;
  in >> word;
  return word;
}

/// A group and those above it.
bool any_limited(const std::filesystem::path& mounted, std::filesystem::path group, const char* file,
                 const std::string& unlimited) {
  for (group = group.relative_path();; group = group.parent_path()) {
    const std::string limit = first_word(mounted / group / file);
    if (!limit.empty() && limit != unlimited) return true;
    if (group.empty()) return false;
  }
}

std::string text_of(const char* file) {
  std::ifstream in(file);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// One turn of waiting that hinders a processor's other hardware thread little.
void pause_once() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  ::sched_yield();
#endif
}

[[noreturn]] void keep_awake(std::size_t processor, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NAME, "simsync-awake");
  if (::getppid() != parent) ::_exit(1);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_IGN);  // the parent ends it
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(processor, &own);
  const sched_param parameters{};
  if (::sched_setscheduler(0, SCHED_IDLE, &parameters) != 0 || ::sched_setaffinity(0, sizeof own, &own) != 0)
    ::_exit(1);
  while (true) pause_once();
}

}  // namespace

bool processors_limited(const std::string& proc_cgroup, const std::filesystem::path& mounted) {
  // A line per hierarchy, number:controllers:group; version 2 has no controllers: cgroups(7).
  std::istringstream lines(proc_cgroup);
  for (std::string number, controllers, group;
       std::getline(lines, number, ':') && std::getline(lines, controllers, ':') && std::getline(lines, group);) {
    if (controllers.empty() && any_limited(mounted, group, "cpu.max", "max")) return true;
    if ((',' + controllers + ',').find(",cpu,") == std::string::npos) continue;
    for (const std::string& folder : {std::string("cpu"), controllers})
      if (any_limited(mounted / folder, group, "cpu.cfs_quota_us", "-1")) return true;
  }
  return false;
}

AwakeProcessors::AwakeProcessors() {
  cpu_set_t allowed;
  if (processors_limited(text_of("/proc/self/cgroup")) || ::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  const pid_t parent = ::getpid();
  processes_.reserve(static_cast<std::size_t>(CPU_COUNT(&allowed)));
  for (std::size_t processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (!CPU_ISSET(processor, &allowed)) continue;
    const pid_t pid = ::fork();
    if (pid == 0) keep_awake(processor, parent);
    if (pid > 0) processes_.push_back(pid);
  }
}

AwakeProcessors::~AwakeProcessors() {
  for (const pid_t process : processes_) ::kill(process, SIGKILL);
  for (const pid_t process : processes_)
    while (::waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
    }
}

}  // namespace simsync
