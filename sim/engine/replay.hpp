// One replay: which instance waits for what, which resource serves whom, what runs. Private to sim/engine.
#pragma once
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "platforms/topology.hpp"
#include "sim/engine/engine.hpp"
#include "sim/engine/enough_steps.hpp"
#include "sim/engine/flow_network.hpp"
#include "sim/engine/folding.hpp"
#include "sim/engine/groups.hpp"
#include "sim/engine/left_behind.hpp"
#include "sim/engine/port_queues.hpp"
#include "sim/engine/recorder.hpp"
#include "sim/engine/replay_state.hpp"
#include "sim/engine/send_queues.hpp"
#include "sim/engine/telling.hpp"
#include "sim/engine/token_buckets.hpp"
#include "sim/engine/ways.hpp"
#include "sim/plan/routed_collective.hpp"
#include "sim/timeline/worker_pace.hpp"

namespace simsync::detail {

class Replay {
public:
  Replay(const Plan& plan, const Cluster& cluster, const ReplayOptions& options);
  Prediction run();

private:
  struct Iteration {
    std::vector<std::int32_t> pending;                       ///< predecessors left, by instance
    std::int64_t left = 0;                                   ///< instances not complete
    Seconds begun{std::numeric_limits<double>::infinity()};  ///< start of its first op
  };

  // replay.cpp: structure
  [[nodiscard]] const Op& op_of(const Instance& i) const { return plan_.ops[static_cast<std::size_t>(i.op)]; }
  Iteration& iteration(int k);
  void release_roots();
  void complete(const Instance& instance);
  void tell(const Instance& waiting, std::int32_t cause);
  void count_off(int k, std::int64_t instances);
  void finish_iteration(int k);
  void end_step();
  void note_pace(const Instance& ended);
  int catch_up(const Instance& ended);
  void stop_when_enough();
  [[nodiscard]] double step_error() const;
  [[nodiscard]] bool is_late(const Instance& instance);
  [[nodiscard]] bool repeats(int k) const;
  void drain();
  void instant_over();
  void handle(FlowNetwork::Token token);
  void report();
  [[nodiscard]] int expected_iterations() const;
  FlowNetwork::Token token(Pending pending);
  void start_flow(int path, double bytes, Pending end);
  void flow_ended(const Pending& end);
  [[nodiscard]] Prediction result();
  void find_step(Prediction& out) const;
  void find_mean(Prediction& out) const;
  [[nodiscard]] double slowest_needed() const;
  void record_into(Prediction& out);

  // replay_resources.cpp: queues, devices, transfers
  void become_ready(const Instance& instance, std::int32_t cause);
  QueueState& queue_state(QueueId queue, const Instance& instance);
  [[nodiscard]] static bool admits(const Queue& queue, const QueueState& state, const Op& op);
  void serve(QueueId queue, QueueState& state, std::int32_t cause);
  void wait_in(QueueState& state, const Instance& instance);
  void leave_queue(const Instance& instance, std::int32_t cause);
  void start(const Instance& instance, std::int32_t cause);
  /// Work on a host: a thread ends what it has begun before it takes up the next, but makes way for what goes first.
  void start_slice(const Instance& instance, Seconds left);
  void end_slice(const Instance& instance);
  /// Takes up what was set aside; false: nothing was.
  bool go_on(const Instance& instance);
  void start_compute(const Instance& instance);
  void arm_compute(Device& device, const Instance& instance);
  void collective_on_device(int rank, int change);
  /// Gives the device's links the rate that they have while it computes, or while it does not.
  void share_links(Device& device);
  void start_transfer(const Instance& instance);
  void enter_connection(const Instance& instance);
  void start_first_turn(const Instance& instance);
  /// `cause`: recorded span that ended.
  void leave_connection(const Instance& instance, std::int32_t cause);
  void wait_behind(Connection& connection, const Connection::Waiting& last);
  void start_turn(const Connection::Waiting& next, std::int32_t cause);
  void end_turn(const Instance& instance, double bytes_left);
  void start_bytes(const Connection::Waiting& next, double bytes, Pending end, std::int32_t cause);

  // replay_collectives.cpp
  void start_collective(const Instance& instance);
  const RoutedSchedule& schedule_for(const Op& op, int simulated);
  void open_collective(int run);
  void start_later(int run, int hop);
  void start_hop(int run, int hop);
  void try_message(int run, int hop);
  void message_sent(int run, int hop);
  void message_arrived(int run, int hop);
  void hop_ended(int run, int hop);
  void close_collective(int run);
  void occupy_devices(const Instance& instance, int change);
  std::int32_t note_hop(int run, int hop, int rounds);

  const Plan& plan_;
  const Cluster& cluster_;
  ReplayOptions options_;
  Folding folding_;
  Groups groups_;
  Topology topology_;
  BorrowedNetwork borrowed_;
  FlowNetwork& network_;
  Ways ways_;
  PortQueues ports_;
  TokenBuckets buckets_;
  SendQueues sends_;
  Telling telling_;
  Recorder recorder_;

  std::vector<std::unique_ptr<Iteration>> iterations_;
  std::vector<Seconds> iteration_end_;
  std::int64_t events_ = 0;
  std::int64_t completed_ = 0;  ///< instances of ops
  bool stopped_ = false;
  bool steady_ = false;
  WorkerPace pace_;
  EnoughSteps enough_;
  LeftBehind left_behind_;
  bool given_up_ = false;                                ///< more work than ReplayOptions::most_work
  std::deque<std::pair<Instance, std::int32_t>> ready_;  ///< with the span that released it
  bool draining_ = false;
  /// Queues to look at once everything that is ready by now waits in them: then priority decides, not the order in
  /// which one event released its successors.
  struct ToServe {
    QueueId queue;
    QueueState* state;
    std::int32_t cause;
  };
  std::deque<ToServe> to_serve_;
  std::vector<int> computed_;  ///< ranks whose compute ended at this instant
  static auto key_of(const Instance& i) { return std::make_tuple(i.op, i.group, i.iteration); }
  std::map<std::tuple<OpId, int, int>, Seconds> set_aside_;  ///< what is left of works that a thread has begun

  std::vector<Pending> pendings_;
  std::vector<std::uint32_t> free_pendings_;
  std::vector<Device> devices_;
  std::vector<std::vector<QueueState>> queues_;
  std::int64_t sequence_ = 0;
  std::map<ConnectionId, Connection> connections_;
  std::map<ScheduleKey, std::unique_ptr<RoutedSchedule>> schedules_;
  std::vector<std::unique_ptr<ActiveCollective>> active_;
  std::vector<int> free_active_;
};

}  // namespace simsync::detail
