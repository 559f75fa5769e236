#include "cli/interruption.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "base/output_file.hpp"

namespace simsync {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};

/// For the handler, which may allocate nothing. The size is 0 while the text changes.
std::array<char, 1024> advice_text{};
std::atomic<std::size_t> advice_size{0};

std::atomic<bool> holds{false};
std::atomic<int> held{0};

/// The handler. Only calls that POSIX allows in the handler of a signal.
void interrupted_by(int signal) {
  int none = 0;
  if (holds && held.compare_exchange_strong(none, signal)) return;
  end_by(signal);
}

}  // namespace

// Only calls that the handler may make.
void end_by(int signal) {
  remove_unfinished_file();
  if (const std::size_t size = advice_size; size > 0) {
    [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, advice_text.data(), size);
  }
  std::signal(signal, SIG_DFL);
  ::kill(::getpid(), signal);  // held back in the handler until that returns
}

void end_interrupted(int signal, const std::string& message) {
  std::cout.flush();
  std::cerr << message << std::endl;
  end_by(signal);
  std::abort();  // not reached: the signal has its default action
}

Interruption::Interruption() {
  for (const int signal : kSignals) {
    struct sigaction before {};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = interrupted_by;
    ::sigaction(signal, &action, nullptr);
  }
}

HeldInterruption::HeldInterruption() {
  held = 0;
  holds = true;
}

HeldInterruption::~HeldInterruption() {
  holds = false;
}

int HeldInterruption::signal() {
  return held;
}

void tell_when_interrupted(const std::string& advice) {
  advice_size = 0;
  const std::string text = (::isatty(STDERR_FILENO) == 1 ? "\r\x1b[K" : "") + advice + "\n";
  const std::size_t size = std::min(text.size(), advice_text.size());
  std::memcpy(advice_text.data(), text.data(), size);
  advice_size = size;
}

void leave_interruption_to_parent() {
  for (const int signal : kSignals) std::signal(signal, SIG_IGN);
}

}  // namespace simsync
