// What a replay keeps for each device, queue, connection and running collective. Private to sim/engine.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "sim/engine/groups.hpp"
#include "sim/plan/routed_collective.hpp"

namespace simsync::detail {

/// What a token of the FlowNetwork stands for.
enum class Event : std::uint8_t {
  ComputeEnds,
  WorkEnds,
  SliceEnds,  ///< of work on a host that takes longer
  SetupEnds,
  PortReached,  ///< by the first byte of a transfer
  TurnEnds,     ///< of a transfer that has more to send
  Told,         ///< one that `instance` waits for has ended
  Answered,     ///< `instance` leaves its queue
  FlowEnds,
  CollectiveSetupEnds,
  HopStarts,
  MessageSent,
  MessageArrives
};

/// An event to come.
struct Pending {
  Event event = Event::WorkEnds;
  Instance instance;
  int run = -1;             ///< active collective
  int hop = -1;             ///< of that collective
  std::uint32_t epoch = 0;  ///< ComputeEnds: stale when the device's epoch has moved on
  std::int32_t flow = -1;   ///< recorded flow that ends with it
  std::int32_t cause = -1;  ///< Told, Answered: recorded span that ended
  double bytes_left = 0.0;  ///< TurnEnds: after this turn
  int path = -1;            ///< of the flow that ends with it
  double bytes = 0.0;       ///< of that flow
};

/// The compute stream of a rank.
struct Device {
  std::optional<Instance> running;
  double remaining = 0.0;  ///< seconds of it at full speed, at `since`
  double since = 0.0;
  std::uint32_t epoch = 0;  ///< grows when the end of `running` moves
  int collectives = 0;      ///< that run on the device now
  double slowdown = 1.0;
  /// Its own links whose rate falls while it computes, with the rate that is then left.
  std::vector<std::pair<int, BytesPerSecond>> links;
  bool holds_up_links = false;
};

/// One group of a Queue.
struct QueueState {
  struct Waiting {
    int priority;
    std::int64_t sequence;
    Instance instance;
    auto operator<=>(const Waiting& other) const {
      return std::tie(priority, sequence) <=> std::tie(other.priority, other.sequence);
    }
  };
  int in_service = 0;      ///< instances
  double in_use = 0.0;     ///< slots
  double in_flight = 0.0;  ///< bytes in service
  std::set<Waiting> waiting;

  void admit(const Op& op) {
    ++in_service;
    in_use += op.threads();
    in_flight += op.bytes();
  }
  void leave(const Op& op) {
    --in_service;
    in_use = in_service == 0 ? 0.0 : in_use - op.threads();
    in_flight -= op.bytes();
  }
  /// Ops of one instance at a time that have one waiting or in service, with the instances behind it.
  std::map<OpId, std::deque<Instance>> behind;
};

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

/// A collective under way.
struct ActiveCollective {
  Instance instance;
  const RoutedSchedule* schedule = nullptr;
  double payload = 0.0;
  double ratio = 1.0;              ///< Op::ratio
  int left = 0;                    ///< hops not ended
  std::vector<std::int32_t> sent;  ///< messages by hop (steps), or started (fluid)
  std::vector<std::int32_t> arrived;
  std::vector<Seconds> start_up;      ///< by hop (fluid)
  std::vector<std::int32_t> blocked;  ///< stages left before a hop may start
  std::vector<char> busy;
};

}  // namespace simsync::detail
