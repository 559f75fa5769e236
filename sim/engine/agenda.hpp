// Events to come in a replay. Private to sim/engine.
#pragma once
#include <cstdint>
#include <vector>

#include "sim/engine/flow_network.hpp"
#include "sim/engine/groups.hpp"

namespace simsync::detail {

enum class Event : std::uint8_t {
  ComputeEnds,
  WorkEnds,
  SliceEnds,  ///< of work on a host that takes longer
  SetupEnds,
  PortReached,   ///< by the first byte of a transfer
  TurnEnds,      ///< of a transfer that has more to send
  Notified,      ///< one that `instance` waits for has ended
  Acknowledged,  ///< `instance` leaves its queue
  FlowEnds,
  CollectiveSetupEnds,
  HopStarts,
  MessageSent,
  MessageArrives,
  CollectiveEnds  ///< whose time was known at its start
};

/// An event to come.
struct Pending {
  Event event = Event::WorkEnds;
  Instance instance;
  int run = -1;             ///< active collective
  int hop = -1;             ///< of that collective
  std::uint32_t epoch = 0;  ///< ComputeEnds: stale when the device's epoch has moved on
  std::int32_t flow = -1;   ///< recorded flow that ends with it
  std::int32_t cause = -1;  ///< Notified, Acknowledged: recorded span that ended
  double bytes_left = 0.0;  ///< TurnEnds: after this turn
  int path = -1;            ///< of the flow that ends with it
  double bytes = 0.0;       ///< of that flow
};

/// The clock of a replay, and the events behind the tokens of its network, which must outlive it.
class Agenda {
public:
  explicit Agenda(FlowNetwork& network) : network_(network) {}

  [[nodiscard]] Seconds now() const { return network_.now(); }
  void after(Seconds delay, const Pending& event) { network_.after(delay, token(event)); }
  /// When the last of `bytes` along a path has arrived.
  void after_flow(int path, double bytes, const Pending& end) { network_.start_flow(path, bytes, token(end)); }
  /// What happens now.
  Pending take(FlowNetwork::Token token) {
    free_.push_back(static_cast<std::uint32_t>(token));
    return pending_[token];
  }

private:
  FlowNetwork::Token token(const Pending& event) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(pending_.size()));
      pending_.emplace_back();
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    pending_[slot] = event;
    return slot;
  }

  FlowNetwork& network_;
  std::vector<Pending> pending_;
  std::vector<std::uint32_t> free_;
};

}  // namespace simsync::detail
