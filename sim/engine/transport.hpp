// Transfers and control messages of a replay: all that concerns how a framework's transport moves bytes between hosts.
// Private to sim/engine.
#pragma once
#include <cstdint>
#include <deque>
#include <vector>

#include "sim/engine/agenda.hpp"
#include "sim/engine/control_messages.hpp"
#include "sim/engine/port_queues.hpp"
#include "sim/engine/recorder.hpp"
#include "sim/engine/routes.hpp"
#include "sim/engine/scene.hpp"
#include "sim/engine/send_queues.hpp"
#include "sim/engine/token_buckets.hpp"

namespace simsync::detail {

/// The FlowNetwork shares links evenly and at once. What that leaves out is here: the streams of a connection that
/// transfers take turns on, what waits in ports (PortQueues) and send buffers (SendQueues), what a port passes after a
/// pause (TokenBuckets), and what hosts tell each other (ControlMessages). Every number is a key of the cluster or of
/// the strategy. All references must outlive it.
class Transport {
public:
  Transport(const Scene& scene, Routes& routes, const FlowNetwork& network, Agenda& agenda, Recorder& recorder);

  /// A transfer starts: its setup, then its bytes, then Event::WorkEnds or Event::FlowEnds.
  void start(const Instance& transfer);
  void setup_ended(const Instance& transfer);
  void port_reached(const Instance& transfer);
  void turn_ended(const Instance& transfer, double bytes_left);
  /// A transfer has ended: its stream goes to whoever has waited longest. `cause`: its recorded span.
  void leave(const Instance& transfer, std::int32_t cause);
  /// Whether an iteration that has ended may leave behind what a later one meets: links with tokens of buckets, or
  /// control messages under way.
  [[nodiscard]] bool leaves_traces() const { return buckets_.any() || control_.any(); }
  /// From now on nobody is served.
  void stop() { stopped_ = true; }

  /// Bytes of anything; `end` happens when the last has arrived.
  void start_flow(int path, double bytes, Pending end);
  /// Before the event at the end of a flow is handled.
  void flow_ended(const Pending& end);

  /// How long the message takes that `done` has ended, to where the op that waits for it is started.
  Seconds notify(const Instance& done, OpId waiting, int group) { return control_.notify(done, waiting, group); }
  /// How long the message takes that a transfer has arrived, to the host whose queue it occupies.
  Seconds acknowledge(const Instance& transfer) { return control_.acknowledge(transfer); }

private:
  /// The streams between two nodes in one direction: so many transfers at a time, the others in the order of arrival.
  struct Connection {
    struct Waiting {
      Instance instance;
      Seconds since;
      double bytes = 0.0;    ///< that it has to send
      double turn = kWhole;  ///< of these, before the next one waiting has its turn
    };
    int in_service = 0;
    std::deque<Waiting> waiting;
  };

  [[nodiscard]] Connection& connection_at(int number);
  void wait_behind(Connection& connection, const Connection::Waiting& last);
  void start_turn(const Connection::Waiting& next, std::int32_t cause);
  /// `cause`: recorded span that ended.
  void start_bytes(const Connection::Waiting& next, double bytes, Pending end, std::int32_t cause);

  Scene scene_;
  Routes& routes_;
  Agenda& agenda_;
  Recorder& recorder_;
  PortQueues ports_;
  TokenBuckets buckets_;
  SendQueues sends_;
  ControlMessages control_;
  std::vector<Connection> connections_;  ///< by number, Routes::connection
  bool stopped_ = false;
};

}  // namespace simsync::detail
