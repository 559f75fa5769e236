// What happens to a command that is stopped by Ctrl-C or by a batch system.
#pragma once
#include <string>

namespace simsync {

/// While it lives, SIGINT, SIGTERM and SIGHUP end the process as they do without it (130 and 143 for a shell), after
/// a message that says how to go on, if a command gave one, and without temporary files. A signal that whoever started
/// the process ignores stays ignored.
class Interruption {
public:
  Interruption();
};

/// While it lives, the first of these signals does not end the process: it is kept for whoever asks, so that what is
/// done can be shown. The second one ends the process. At most one at a time.
class HeldInterruption {
public:
  HeldInterruption();
  HeldInterruption(const HeldInterruption&) = delete;
  HeldInterruption& operator=(const HeldInterruption&) = delete;
  ~HeldInterruption();
  /// The signal that came; 0: none.
  [[nodiscard]] static int signal();
};

/// What the message says from now on: which file keeps what is done, and how to go on.
void tell_when_interrupted(const std::string& advice);
/// Ends this process as `signal` would.
void end_by(int signal);
/// Ends this process by the signal that HeldInterruption keeps, or by another that a child was told, after `message`.
[[noreturn]] void end_interrupted(int signal, const std::string& message);
/// In a child of a process that decides when its children end: they do not hear what is said to all.
void leave_interruption_to_parent();

}  // namespace simsync
