// Links, flows that share them max-min fairly, and a clock. What moves bytes and time in a replay.
//
// Latency is a delay before the flow, not a property of links. Two solvers: SimGrid, the reference, of which there is
// one in a process; and one of our own, of which there may be any number.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/units.hpp"
#include "sim/problem/replay_options.hpp"

namespace simsync {

/// Simulated network and clock. Not thread-safe.
class FlowNetwork {
public:
  using Token = std::uint64_t;
  using Handler = std::function<void(Token)>;

  FlowNetwork() = default;
  virtual ~FlowNetwork() = default;
  FlowNetwork(const FlowNetwork&) = delete;
  FlowNetwork& operator=(const FlowNetwork&) = delete;

  /// Forgets the last problem: the clock reads zero, no path is defined. Links are numbered as in `bandwidths`.
  virtual void begin(const std::vector<BytesPerSecond>& bandwidths) = 0;
  /// A further link, numbered after the last one.
  virtual int add_link(BytesPerSecond bandwidth) = 0;
  /// Changes the rate of a link, also for the flows that are under way; not above what it was at first, because with
  /// SimGrid 3.32 flows under way would not follow.
  virtual void set_bandwidth(int link, BytesPerSecond bandwidth) = 0;
  /// A way across `links`, which must not be empty, each of its flows at no more than `cap` (infinite: no limit). A
  /// link that is named k times carries k times the rate (the native solver only: SimGrid's routes take a link once).
  /// Returns its number.
  virtual int add_path(const std::vector<int>& links, BytesPerSecond cap) = 0;
  /// Starts moving `bytes`, rounded to whole ones, along a path; `token` is handed to the handler when the last byte
  /// has arrived. Less than half a byte arrives at once.
  virtual void start_flow(int path, double bytes, Token token) = 0;
  /// Calls `visit` for every flow across `link` that is under way, with its path and the bytes that it has left. Flows
  /// that start at this very instant are not among them.
  virtual void visit_flows(int link, const std::function<void(int path, double bytes_left)>& visit) const = 0;
  /// How many flows visit_flows would visit.
  [[nodiscard]] virtual std::size_t flows_across(int link) const = 0;
  /// Bytes of the flows along a path that start at this very instant.
  [[nodiscard]] virtual double starting_bytes(int path) const = 0;
  /// Hands `token` to the handler after `delay`.
  virtual void after(Seconds delay, Token token) = 0;
  /// Runs until nothing is left to happen. The handler may start flows and delays, as may `instant_over`, which is
  /// called when it has heard of all delays, and again when it has heard of all flows, that end at one instant.
  virtual void run(Handler handler, std::function<void()> instant_over) = 0;
  /// Simulated time since `begin`.
  [[nodiscard]] virtual Seconds now() const = 0;
  [[nodiscard]] virtual std::int64_t flows_started() const = 0;
  /// What the flows since `begin` cost SimGrid to simulate, as a count that does not depend on the machine: for every
  /// flow one for each that is in flight when it starts, because SimGrid 3.32 shares links anew and looks at all of
  /// them when one starts or ends, and 256 for the flow itself. A million is some ten to thirty milliseconds.
  [[nodiscard]] virtual std::int64_t work() const = 0;
};

/// SimGrid's. One for the process, because SimGrid allows one engine.
FlowNetwork& simgrid_network();
extern "C" {
/// The same, as load_simgrid.cpp calls it.
FlowNetwork* simsync_simgrid_network();
}
/// Our own (native_network.cpp).
std::unique_ptr<FlowNetwork> native_network();

/// The network that a solver names, for one replay: SimGrid's is borrowed, the native one is the borrower's own.
class BorrowedNetwork {
public:
  explicit BorrowedNetwork(Solver solver)
      : own_(solver == Solver::Native ? native_network() : nullptr), network_(own_ ? *own_ : simgrid_network()) {}
  FlowNetwork& operator*() const { return network_; }

private:
  std::unique_ptr<FlowNetwork> own_;
  FlowNetwork& network_;
};

}  // namespace simsync
