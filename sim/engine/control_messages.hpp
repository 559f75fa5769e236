// Control messages: what hosts tell each other besides data. Private to sim/engine.
#pragma once
#include <map>
#include <utility>

#include "platforms/topology.hpp"
#include "sim/engine/groups.hpp"
#include "sim/engine/port_queues.hpp"
#include "sim/engine/send_queues.hpp"

namespace simsync::detail {

/// How long the messages without data take that parameter servers need: a worker learns that a server has updated a
/// variable, asks for a read that waited in its own queue, and hears that a push has arrived before the next leaves a
/// queue. Zero on one host, and among ops of which none belongs to a server. Plan, groups, topology, ports and sends
/// must outlive it. Every call sends one: those between two nodes keep their order.
class ControlMessages {
public:
  ControlMessages(const Plan& plan, const Groups& groups, const Topology& topology, PortQueues& ports,
                  const SendQueues& sends);

  /// Whether any op belongs to a server.
  [[nodiscard]] bool any() const { return any_; }
  /// From where `done` ends to where the op that waits for it is started.
  Seconds notify(const Instance& done, OpId waiting, int group);
  /// From where a transfer is started to where its bytes lie, and until a server's thread begins to send what was asked
  /// for from a queue.
  Seconds request(const Instance& transfer);
  /// From where a transfer arrives back to whose queue it occupies.
  Seconds acknowledge(const Instance& transfer);

private:
  [[nodiscard]] const Op& op_of(OpId op) const { return plan_.ops[static_cast<std::size_t>(op)]; }
  [[nodiscard]] int node_at(const End& end, const Op& op, int group) const;
  [[nodiscard]] int node_of_group(const Op& op, int group) const;
  [[nodiscard]] int starts_at(const Op& op, int group) const;
  [[nodiscard]] int ends_at(const Op& op, int group) const;
  /// `connection`: the number of the one that it takes.
  Seconds between(int from, int to, int connection);

  const Plan& plan_;
  const Groups& groups_;
  const Topology& topology_;
  PortQueues& ports_;
  const SendQueues& sends_;
  bool any_;
  std::map<std::pair<int, int>, Path> known_;  ///< by nodes
};

}  // namespace simsync::detail
