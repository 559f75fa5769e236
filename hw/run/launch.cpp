#include "hw/run/launch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/interrupted.hpp"
#include "hw/run/stolen_time.hpp"

namespace simsync {
namespace {

volatile std::sig_atomic_t stop_signal = 0;

/// Notes SIGINT and SIGTERM while it lives, so that the children can be ended in order.
class SignalNote {
public:
  SignalNote() {
    stop_signal = 0;
    struct sigaction action {};
    action.sa_handler = [](int signal) { stop_signal = signal; };
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      sigaction(kSignals[i], &action, &before_[i]);
      if (before_[i].sa_handler == SIG_IGN) sigaction(kSignals[i], &before_[i], nullptr);  // as under nohup
    }
  }
  ~SignalNote() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }
  SignalNote(const SignalNote&) = delete;
  SignalNote& operator=(const SignalNote&) = delete;

private:
  static constexpr std::array<int, 3> kSignals{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, 3> before_{};
};

/// First byte of what a child says.
enum class Verdict : char { Done = 'd', Run = 'r', Wrong = 'w', Capability = 'c', Internal = 'i' };

void write_all(int fd, const std::string& text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const ssize_t n = ::write(fd, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    at += static_cast<std::size_t>(n);
  }
}

std::string said(Verdict verdict, const std::string& text) {
  return static_cast<char>(verdict) + text;
}

std::string verdict_of(const Plan& plan, const AgentOptions& options) {
  try {
    const auto measured = run_agent(plan, options);
    return said(Verdict::Done, measured ? to_text(*measured) : "");
  } catch (const WrongResult& e) {
    return said(Verdict::Wrong, e.what());
  } catch (const RunError& e) {
    return said(Verdict::Run, e.what());
  } catch (const CapabilityError& e) {
    return said(Verdict::Capability, e.what());
  } catch (const std::exception& e) {
    return said(Verdict::Internal, e.what());
  }
}

struct Child {
  AgentId agent = 0;
  pid_t pid = -1;
  int pipe = -1;
  std::string said;
  std::optional<int> status;  ///< of waitpid, once it has ended
  [[nodiscard]] bool failed() const {
    return status && (said.empty() || said[0] != static_cast<char>(Verdict::Done) || !WIFEXITED(*status));
  }
};

/// @return whether the calling process is scheduled that way now.
bool schedule(int policy, int priority) {
  sched_param parameters{};
  parameters.sched_priority = priority;
  return sched_setscheduler(0, policy, &parameters) == 0;
}

class Launcher {
public:
  Launcher(const Plan& plan, const LaunchOptions& options) : plan_(plan), options_(options), roles_(plan) {}
  ~Launcher() { end_all(); }
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  Measurement run() {
    for (AgentId agent = 0; agent < roles_.agents(); ++agent) start(agent);
    while (running() > 0) {
      look(100);
      if (stop_signal != 0) {
        end_all();
        throw Interrupted(fmt::format("stopped by {}", strsignal(stop_signal)), stop_signal);
      }
      if (const Child* first = first_failure()) explain(*first);
    }
    return measurement(children_.front().said.substr(1));
  }

private:
  [[nodiscard]] AgentOptions options_of(AgentId agent) const {
    AgentOptions out;
    out.self = agent;
    out.address = options_.address(roles_.node_of(agent));
    out.agent0_address = fmt::format("{}:{}", options_.address(roles_.node_of(0)), options_.port);
    out.run = options_.run;
    out.devices = options_.devices;
    const auto rank = static_cast<std::size_t>(agent);
    if (rank < options_.slowdown.size()) out.slowdown = options_.slowdown[rank];
    return out;
  }

  void start(AgentId agent) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw CapabilityError(fmt::format("pipe: {}", std::strerror(errno)));
    const AgentOptions options = options_of(agent);
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) throw CapabilityError(fmt::format("fork: {}", std::strerror(errno)));
    if (pid == 0) {
      ::close(ends[0]);
      become(agent, options, parent, ends[1]);
    }
    ::close(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    children_.push_back({agent, pid, ends[0], {}, {}});
  }

  [[noreturn]] void become(AgentId agent, const AgentOptions& options, pid_t parent, int pipe) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // no orphans, whatever happens to the parent
    if (getppid() != parent) std::_Exit(1);
    std::signal(SIGINT, SIG_IGN);  // the parent decides
    std::signal(SIGTERM, SIG_DFL);
    std::signal(SIGHUP, SIG_DFL);
    setenv("GRPC_VERBOSITY", "NONE", 1);
    if (options_.real_time) schedule(SCHED_RR, 1);  // without the right, as before
    std::string verdict;
    try {
      if (options_.enter) options_.enter(roles_.node_of(agent));
      verdict = verdict_of(plan_, options);
    } catch (const std::exception& e) {
      verdict = said(Verdict::Capability, e.what());
    }
    write_all(pipe, verdict);
    std::_Exit(verdict[0] == static_cast<char>(Verdict::Done) ? 0 : 1);
  }

  [[nodiscard]] int running() const {
    int out = 0;
    for (const Child& child : children_) out += child.status ? 0 : 1;
    return out;
  }

  /// Reads what the children say and notes which have ended; waits at most so many milliseconds.
  void look(int timeout_ms) {
    std::vector<pollfd> fds;
    for (const Child& child : children_)
      if (!child.status) fds.push_back({child.pipe, POLLIN, 0});
    poll(fds.data(), fds.size(), timeout_ms);
    for (Child& child : children_) {
      read_from(child);
      int status = 0;
      if (!child.status && waitpid(child.pid, &status, WNOHANG) == child.pid) {
        read_from(child);
        child.status = status;
      }
    }
  }

  static void read_from(Child& child) {
    std::array<char, 65536> buffer{};
    while (child.pipe >= 0) {
      const ssize_t n = ::read(child.pipe, buffer.data(), buffer.size());
      if (n < 0) return;
      if (n == 0) {
        ::close(child.pipe);
        child.pipe = -1;  // poll() passes over it
        return;
      }
      child.said.append(buffer.data(), static_cast<std::size_t>(n));
    }
  }

  /// The failure that explains the others: a death before an error of its own before an error about a peer.
  [[nodiscard]] const Child* first_failure() {
    const auto any = std::find_if(children_.begin(), children_.end(), [](const Child& c) { return c.failed(); });
    if (any == children_.end()) return nullptr;
    // Its consequences, or its cause: an agent that found the others gone may be the first to say so.
    constexpr double kPatience = 3.0;
    for (const double until = now_s() + kPatience; now_s() < until && running() > 0 && weight(*any) < kDied;) look(20);
    const Child* best = nullptr;
    for (const Child& child : children_)
      if (child.failed() && (best == nullptr || weight(child) > weight(*best))) best = &child;
    return best;
  }
  static constexpr int kDied = 4;
  static int weight(const Child& child) {
    if (child.said.empty()) return kDied;
    switch (static_cast<Verdict>(child.said[0])) {
      case Verdict::Wrong:
      case Verdict::Internal:
        return 3;
      case Verdict::Capability:
        return 2;
      default:
        return child.said.find("lost the connection") == std::string::npos ? 1 : 0;
    }
  }

  [[noreturn]] void explain(const Child& child) {
    const std::string who = name_of(plan_, child.agent);
    const std::string text = child.said.empty() ? "" : child.said.substr(1);
    const int status = *child.status;
    const auto verdict = child.said.empty() ? Verdict::Run : static_cast<Verdict>(child.said[0]);
    end_all();
    if (WIFSIGNALED(status))
      throw RunError(fmt::format("{} was ended by signal {} ({})", who, WTERMSIG(status), strsignal(WTERMSIG(status))));
    if (child.said.empty())
      throw RunError(fmt::format("{} ended without a word, exit code {}", who, WEXITSTATUS(status)));
    if (verdict == Verdict::Wrong) throw WrongResult(text);
    if (verdict == Verdict::Capability) throw CapabilityError(fmt::format("{}: {}", who, text));
    throw RunError(fmt::format("{}: {}", who, text));
  }

  void end_all() {
    for (Child& child : children_) {
      if (child.status) continue;
      kill(child.pid, SIGKILL);
      int status = 0;
      waitpid(child.pid, &status, 0);
      child.status = status;
    }
    for (Child& child : children_)
      if (child.pipe >= 0) ::close(std::exchange(child.pipe, -1));
  }

  const Plan& plan_;
  const LaunchOptions& options_;
  Roles roles_;
  std::vector<Child> children_;
};

}  // namespace

bool real_time_allowed() {
  const bool allowed = schedule(SCHED_RR, 1);
  if (allowed) schedule(SCHED_OTHER, 0);
  return allowed;
}

Measurement launch(const Plan& plan, const LaunchOptions& options) {
  const SignalNote note;
  const StolenTime stolen;
  Measurement out = Launcher(plan, options).run();
  out.stolen = stolen.share();
  return out;
}

}  // namespace simsync
