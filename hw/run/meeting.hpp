// How the processes of a run find each other, start together and end together. Agent 0 is the one that all know.
#pragma once
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "hw/run/collectives.hpp"
#include "hw/run/links.hpp"

namespace simsync {

/// Agent 0 keeps the tables; the others ask it. Waits end with a RunError after the timeout or when a peer fails.
class Meeting : public KeyValueStore {
public:
  Meeting(AgentId self, int agents, double timeout_s) : self_(self), agents_(agents), timeout_s_(timeout_s) {}
  void use(Links& links) { links_ = &links; }

  /// Tells agent 0 where this agent listens. @return the addresses of all, by agent.
  std::vector<std::string> exchange_addresses(const std::string& own);
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key) override;
  /// Returns when every agent has called it.
  void wait_for_all();
  /// Hands a result to agent 0 and waits until it has all, at most `patience_s`. @return on agent 0 all results by
  /// agent, elsewhere nothing.
  std::vector<std::string> gather(const std::string& result, double patience_s);

  /// Takes a frame that belongs to the meeting; false for any other.
  bool take(AgentId from, const FrameHeader& header, Pieces payload);
  /// Ends every wait with this error.
  void fail(const std::string& why);
  /// Tells agent 0 why this agent's run ends or, as agent 0, everybody; returns when they have heard it or are gone, or
  /// after a second.
  void tell_failure(const std::string& why);
  /// `peer` has ended its connection. @return whether it may by now: it, or this agent, has handed over its result. An
  /// agent whose result is out needs no more than the end of agent 0.
  bool left(AgentId peer);

private:
  template <class Done>
  void wait(const char* what, Done done) {
    wait_for(what, timeout_s_, std::move(done));
  }
  template <class Done>
  void wait_for(const char* what, double patience_s, Done done);
  void answer(AgentId to, const std::string& key);
  std::string missing(const std::map<AgentId, std::string>& have) const;

  AgentId self_;
  int agents_;
  double timeout_s_;
  Links* links_ = nullptr;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<AgentId, std::string> addresses_;  ///< agent 0
  std::string table_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::vector<AgentId>> asked_;  ///< agent 0: keys that are not set yet
  std::map<AgentId, std::string> ready_;               ///< agent 0
  bool go_ = false;
  std::map<AgentId, std::string> results_;  ///< agent 0
  bool delivered_ = false;                  ///< this agent's result is out
  bool over_ = false;
  std::string failure_;
  std::set<AgentId> know_failure_;  ///< have heard why this agent's run ends, or are gone
};

}  // namespace simsync
