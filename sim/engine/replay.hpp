// One replay: which instance waits for what, which resource serves whom, what runs. Private to sim/engine.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "platforms/topology.hpp"
#include "sim/engine/collective_run.hpp"
#include "sim/engine/engine.hpp"
#include "sim/engine/flow_network.hpp"
#include "sim/engine/folding.hpp"

namespace simsync::detail {

/// An instance of an op in one iteration.
struct Instance {
  OpId op = 0;
  int cell = 0;
  int iteration = 0;
};

class Replay {
public:
  Replay(const Plan& plan, const Cluster& cluster, const ReplayOptions& options);
  Prediction run();

private:
  // What a token of the FlowNetwork stands for.
  enum class Event : std::uint8_t {
    Idle,
    ComputeEnds,
    WorkEnds,
    SetupEnds,
    FlowEnds,
    CollectiveSetupEnds,
    HopStarts,
    MessageSent,
    MessageArrives
  };
  struct Pending {
    Event event = Event::Idle;
    Instance instance;
    int run = -1;             ///< active collective
    int hop = -1;             ///< of that collective
    std::uint32_t epoch = 0;  ///< ComputeEnds: stale when the device's epoch has moved on
    std::int32_t flow = -1;   ///< recorded flow that ends with it
  };

  struct Device {
    std::optional<Instance> running;
    double remaining = 0.0;
    double since = 0.0;
    std::uint32_t epoch = 0;
    int collectives = 0;
    double slowdown = 1.0;
  };

  struct Waiting {
    int priority;
    std::int64_t sequence;
    Instance instance;
    auto operator<=>(const Waiting& other) const {
      return std::tie(priority, sequence) <=> std::tie(other.priority, other.sequence);
    }
  };
  struct QueueState {
    int in_service = 0;
    double in_flight = 0.0;
    std::set<Waiting> waiting;
  };

  struct Iteration {
    std::vector<std::int32_t> pending;  ///< predecessors left, by instance
    std::int64_t left = 0;              ///< instances not complete
  };

  struct Way {
    int path = -1;  ///< -1: nothing to cross
    Seconds delay;
    double extra_bytes = 0.0;
    BytesPerSecond cap{};
    std::pair<int, int> connection{-1, -1};  ///< nodes whose connection serves its transfers in turn
    std::vector<int> links;
  };
  /// The streams between two nodes in one direction: so many transfers at a time, the others in the order of arrival.
  struct Connection {
    int link = -1;
    int in_service = 0;
    std::deque<Instance> waiting;
  };

  struct ActiveCollective {
    Instance instance;
    const RoutedSchedule* schedule = nullptr;
    double payload = 0.0;
    int left = 0;                    ///< hops not ended
    std::vector<std::int32_t> sent;  ///< messages by hop (steps), or started (fluid)
    std::vector<std::int32_t> arrived;
    std::vector<Seconds> start_up;      ///< by hop (fluid)
    std::vector<std::int32_t> blocked;  ///< stages left before a hop may start
    std::vector<char> busy;
  };

  // replay.cpp: structure
  void index_cells();
  void index_ops();
  [[nodiscard]] int cells(Scope scope) const;
  [[nodiscard]] std::pair<int, int> related(Scope from, int cell, Scope to) const;
  [[nodiscard]] std::size_t number(OpId op, int cell) const {
    return first_[static_cast<std::size_t>(op)] + static_cast<std::size_t>(cell);
  }
  [[nodiscard]] const Op& op_of(const Instance& i) const { return plan_.ops[static_cast<std::size_t>(i.op)]; }
  Iteration& iteration(int k);
  void release_roots();
  void complete(const Instance& instance);
  void finish_iteration(int k);
  void drain();
  void handle(FlowNetwork::Token token);
  FlowNetwork::Token token(Pending pending);

  // replay_resources.cpp: queues, devices, transfers
  void become_ready(const Instance& instance, std::int32_t cause);
  QueueState& queue_state(QueueId queue, const Instance& instance);
  [[nodiscard]] static bool admits(const Queue& queue, const QueueState& state, double bytes);
  void serve(QueueId queue, QueueState& state, std::int32_t cause);
  void leave_queue(const Instance& instance);
  void start(const Instance& instance, std::int32_t cause);
  void start_compute(const Instance& instance);
  void arm_compute(Device& device, const Instance& instance);
  void collective_on_device(int rank, int change);
  void start_transfer(const Instance& instance);
  const Way& way_of(const Instance& instance);
  [[nodiscard]] Place place_of(const End& end, const Op& op, int cell) const;
  int path_along(const std::vector<int>& links, BytesPerSecond cap);
  void enter_connection(const Instance& instance);
  void leave_connection(const Instance& instance);
  void start_bytes(const Instance& instance);
  int connection_link(int from_node, int to_node, double capacity);

  // replay_collectives.cpp
  void start_collective(const Instance& instance);
  const RoutedSchedule& schedule_for(const Op& op, int cell);
  void open_collective(int run);
  void start_later(int run, int hop);
  void start_hop(int run, int hop);
  void try_message(int run, int hop);
  void message_sent(int run, int hop);
  void message_arrived(int run, int hop);
  void hop_ended(int run, int hop);
  void close_collective(int run);
  void occupy_devices(const Instance& instance, int change);

  // recording
  void note_ready(const Instance& instance, std::int32_t cause);
  void note_start(const Instance& instance, std::int32_t cause);
  std::int32_t note_end(const Instance& instance);
  std::int32_t note_flow(const FlowSpan& flow);
  std::int32_t note_hop(int run, int hop, int rounds);
  void record_into(Prediction& out);
  [[nodiscard]] Prediction result();

  const Plan& plan_;
  const Cluster& cluster_;
  ReplayOptions options_;
  Folding folding_;
  Topology topology_;
  FlowNetwork& network_;

  std::vector<int> ranks_;          ///< simulated ranks, ascending
  std::vector<int> node_begin_;     ///< simulated node -> its first simulated rank; one more entry
  std::vector<int> node_of_;        ///< simulated rank -> simulated node
  std::vector<std::size_t> first_;  ///< op -> number of its first instance
  std::size_t instances_ = 0;
  std::vector<std::vector<After>> releases_;  ///< op -> ops that wait for it (After::op is the waiting op)
  std::vector<std::int32_t> waits_now_;       ///< instance -> predecessors of the same iteration
  std::vector<std::int32_t> waits_before_;    ///< instance -> predecessors of the iteration before

  std::vector<std::unique_ptr<Iteration>> iterations_;
  std::vector<Seconds> iteration_end_;
  bool stopped_ = false;
  bool steady_ = false;
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

  std::vector<Pending> pendings_;
  std::vector<std::uint32_t> free_pendings_;
  std::vector<Device> devices_;
  std::vector<std::vector<QueueState>> queues_;
  std::int64_t sequence_ = 0;
  std::vector<std::unique_ptr<Way>> ways_;                    ///< by instance
  std::map<std::pair<std::vector<int>, double>, int> paths_;  ///< by links and cap
  std::vector<FlowPath> flow_paths_;                          ///< by path
  std::map<std::pair<int, int>, Connection> connections_;     ///< by (from node, to node)
  std::map<ScheduleKey, std::unique_ptr<RoutedSchedule>> schedules_;
  std::vector<std::unique_ptr<ActiveCollective>> active_;
  std::vector<int> free_active_;

  struct Noted {
    double ready = 0.0;
    double start = 0.0;
    std::int32_t cause = -1;
  };
  std::map<std::pair<std::size_t, int>, Noted> noted_;  ///< instance and iteration -> times so far
  std::vector<Span> spans_;
  std::vector<FlowSpan> flows_;
  std::vector<double> link_rate_;
  std::vector<std::string> link_name_;
};

}  // namespace simsync::detail
