// What happened elsewhere, in the order in which the executor gets to know it.
#pragma once
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "hw/run/roles.hpp"

namespace simsync {

/// Seconds of this machine's monotonic clock.
double now_s();

struct Event {
  enum class Kind {
    Ended,     ///< a task of this agent: a thread of its own finished it
    Arrived,   ///< a transfer to this agent is complete
    Notified,  ///< another agent saw it end
    Begin,     ///< agent 0 lets a collective start
    Ask,       ///< a worker wants this transfer
    Lost,      ///< a connection broke
    Failed,    ///< something broke that makes the run worthless
    Wrong,     ///< a result is not what it should be
  };
  Kind kind = Kind::Ended;
  Instance instance;
  int iteration = 0;
  AgentId from = -1;
  double at = 0.0;   ///< when it happened
  std::string text;  ///< Lost, Failed, Wrong: why
};

/// A queue with any number of writers and one reader.
class Inbox {
public:
  void push(Event event);
  /// The next event; none when there is none until `deadline` on the clock of now_s().
  std::optional<Event> pop_until(double deadline);

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Event> events_;
};

}  // namespace simsync
