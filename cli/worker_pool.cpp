#include "cli/worker_pool.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <map>
#include <new>
#include <optional>
#include <thread>
#include <vector>

#include "cli/failure.hpp"
#include "cli/interruption.hpp"

namespace simsync {
namespace {

using Work = std::function<std::string(std::size_t)>;

/// A number that all processes count up together.
class SharedCounter {
public:
  SharedCounter()
      : memory_(::mmap(nullptr, sizeof(Counter), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED) throw CapabilityError("cannot share memory with worker processes");
    counter_ = new (memory_) Counter(0);
  }
  SharedCounter(const SharedCounter&) = delete;
  SharedCounter& operator=(const SharedCounter&) = delete;
  ~SharedCounter() { ::munmap(memory_, sizeof(Counter)); }
  std::size_t next() { return counter_->fetch_add(1); }

private:
  using Counter = std::atomic<std::size_t>;
  static_assert(Counter::is_always_lock_free);
  void* memory_;
  Counter* counter_ = nullptr;
};

/// One answer on its way to the parent: a head of three hexadecimal numbers, then the text.
struct Message {
  std::size_t index = 0;
  ExitCode code = ExitCode::Ok;  ///< of a failure, else Ok
  std::string text;
};
constexpr std::size_t kHead = 26;

void send(int pipe, const Message& message) {
  const std::string bytes = fmt::format("{:016x}{:02x}{:08x}{}", message.index, static_cast<int>(message.code),
                                        message.text.size(), message.text);
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t n = ::write(pipe, bytes.data() + at, bytes.size() - at);
    if (n <= 0) ::_exit(static_cast<int>(ExitCode::Internal));
    at += static_cast<std::size_t>(n);
  }
}

bool read_exactly(int pipe, std::string& into, std::size_t size) {
  into.resize(size);
  for (std::size_t at = 0; at < size;) {
    const ssize_t n = ::read(pipe, into.data() + at, size - at);
    if (n <= 0) return false;
    at += static_cast<std::size_t>(n);
  }
  return true;
}

/// Nothing when the child has ended.
std::optional<Message> receive(int pipe) {
  std::string head;
  Message message;
  if (!read_exactly(pipe, head, kHead)) return std::nullopt;
  message.index = std::stoul(head.substr(0, 16), nullptr, 16);
  message.code = static_cast<ExitCode>(std::stoi(head.substr(16, 2), nullptr, 16));
  if (!read_exactly(pipe, message.text, std::stoul(head.substr(18), nullptr, 16))) return std::nullopt;
  return message;
}

[[noreturn]] void child_main(int pipe, std::size_t count, SharedCounter& counter, const Work& work) {
  for (std::size_t i = counter.next(); i < count; i = counter.next()) {
    Message message{.index = i, .code = ExitCode::Ok, .text = {}};
    try {
      message.text = work(i);
    } catch (...) {
      const Failure failure = current_failure();
      message.code = failure.code;
      message.text = failure.text;
    }
    send(pipe, message);
    if (message.code != ExitCode::Ok) break;
  }
  ::_exit(0);  // the parent's buffers and handlers are not ours
}

/// Child processes and the pipes that they answer on; none outlives this.
class Children {
public:
  Children() = default;
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children() {
    for (const Child& child : children_) {
      if (child.pipe >= 0) ::close(child.pipe);
      if (child.ended) continue;
      ::kill(child.pid, SIGKILL);  // it keeps nothing that would be lost
      ::waitpid(child.pid, nullptr, 0);
    }
  }

  void start(std::size_t count, SharedCounter& counter, const Work& work) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) throw CapabilityError("cannot open a pipe to a worker process");
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a parent that is killed takes its children along
      leave_interruption_to_parent();
      if (::getppid() != parent) ::_exit(1);
      ::close(ends[0]);
      for (const Child& other : children_) ::close(other.pipe);
      child_main(ends[1], count, counter, work);
    }
    ::close(ends[1]);
    if (pid < 0) {
      ::close(ends[0]);
      throw CapabilityError("cannot start a worker process");
    }
    children_.push_back({pid, ends[0]});
  }

  /// The next answer of any child; nothing when `stop` says so first.
  /// @throws CapabilityError when one has died, or all have ended.
  std::optional<Message> next(const std::function<bool()>& stop) {
    for (;;) {
      const auto ready = wait(stop);
      if (!ready) return std::nullopt;
      Child& child = children_[*ready];
      if (auto message = receive(child.pipe)) return message;
      ::close(child.pipe);
      child.pipe = -1;
      expect_success(child);
    }
  }

private:
  struct Child {
    pid_t pid = -1;
    int pipe = -1;  ///< -1: it has said its last
    bool ended = false;
  };

  /// What a child that died was at work on has no answer, whatever the others do.
  static void expect_success(Child& child) {
    int status = 0;
    while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
    }
    child.ended = true;
    if (WIFSIGNALED(status))
      throw CapabilityError(fmt::format(
          "a worker process was ended by signal {} ({}); if it was for lack of memory, fewer --jobs need less",
          WTERMSIG(status), strsignal(WTERMSIG(status))));
  }

  /// A child that has something to say or has ended; nothing when `stop` says so first.
  [[nodiscard]] std::optional<std::size_t> wait(const std::function<bool()>& stop) const {
    constexpr int kAskAgain = 100;  // ms
    std::vector<pollfd> pipes;
    for (const Child& child : children_) pipes.push_back({.fd = child.pipe, .events = POLLIN, .revents = 0});
    const auto open = [](const pollfd& one) { return one.fd >= 0; };
    if (std::none_of(pipes.begin(), pipes.end(), open)) throw CapabilityError("a worker process ended early");
    for (int ready = 0; ready <= 0;) {
      if (stop && stop()) return std::nullopt;
      ready = ::poll(pipes.data(), pipes.size(), stop ? kAskAgain : -1);
      if (ready < 0 && errno != EINTR) throw CapabilityError("cannot wait for worker processes");
    }
    const auto ready = std::find_if(pipes.begin(), pipes.end(), [](const pollfd& one) { return one.revents != 0; });
    return static_cast<std::size_t>(ready - pipes.begin());
  }

  std::vector<Child> children_;
};

}  // namespace

int processors() {
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 256U));
}

bool run_in_processes(std::size_t count, int jobs, const Work& work,
                      const std::function<void(std::size_t, const std::string&)>& done,
                      const std::function<bool()>& stop) {
  const std::size_t processes = std::min<std::size_t>(static_cast<std::size_t>(jobs), count);
  if (processes == 0 || (processes == 1 && !stop)) {
    for (std::size_t i = 0; i < count; ++i) done(i, work(i));
    return true;
  }
  std::cout.flush();
  SharedCounter counter;
  Children children;
  for (std::size_t c = 0; c < processes; ++c) children.start(count, counter, work);
  std::map<std::size_t, Message> early;  // answers whose turn has not come
  for (std::size_t i = 0; i < count; ++i) {
    while (!early.contains(i)) {
      std::optional<Message> message = children.next(stop);
      if (!message) return false;
      const std::size_t index = message->index;
      early.emplace(index, std::move(*message));
    }
    const auto turn = early.extract(i);
    if (turn.mapped().code != ExitCode::Ok) throw WorkerError({turn.mapped().text, turn.mapped().code});
    done(i, turn.mapped().text);
  }
  return true;
}

}  // namespace simsync
