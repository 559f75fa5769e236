// The one place that knows SimGrid: links, flows that share them max-min fairly, and a clock.
//
// SimGrid allows one engine per process and no new hosts once it has run. So this class keeps a pool of links and
// of "path" hosts in star zones (a new page of them whenever the pool runs short) and gives every problem its
// own routes: a path host's way up is the list of links to cross, every flow ends at the page's sink, whose way
// down is empty. Latency is a delay before the flow, not a property of SimGrid's links.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/units.hpp"

namespace simsync {

/// Simulated network and clock. Not thread-safe; there is one in a process.
class FlowNetwork {
public:
  using Token = std::uint64_t;
  using Handler = std::function<void(Token)>;

  /// The network of this process.
  static FlowNetwork& instance();
  ~FlowNetwork();
  FlowNetwork(const FlowNetwork&) = delete;
  FlowNetwork& operator=(const FlowNetwork&) = delete;

  /// Forgets the last problem: the clock reads zero, no path is defined. Links are numbered as in `bandwidths`.
  void begin(const std::vector<BytesPerSecond>& bandwidths);
  /// A further link, numbered after the last one.
  int add_link(BytesPerSecond bandwidth);
  /// Changes the rate of a link, also for the flows that are under way.
  void set_bandwidth(int link, BytesPerSecond bandwidth);
  /// A way across `links`, which must not be empty, each of its flows at no more than `cap` (infinite: no limit).
  /// Returns its number.
  int add_path(const std::vector<int>& links, BytesPerSecond cap);
  /// Starts moving `bytes` along a path; `token` is handed to the handler when the last byte has arrived. Less than
  /// half a byte arrives at once.
  void start_flow(int path, double bytes, Token token);
  /// Calls `visit` for every flow across `link` that is under way, with its path and the bytes that it has left. Flows
  /// that start at this very instant are not among them.
  void visit_flows(int link, const std::function<void(int path, double bytes_left)>& visit) const;
  /// How many flows visit_flows would visit.
  [[nodiscard]] std::size_t flows_across(int link) const;
  /// Bytes of the flows along a path that start at this very instant.
  [[nodiscard]] double starting_bytes(int path) const;
  /// Hands `token` to the handler after `delay`.
  void after(Seconds delay, Token token);
  /// Runs until nothing is left to happen. The handler may start flows and delays.
  void run(Handler handler);
  /// Simulated time since `begin`.
  [[nodiscard]] Seconds now() const;
  [[nodiscard]] std::int64_t flows_started() const;
  /// What the flows since `begin` cost to simulate, as a count that does not depend on the machine: for every flow one
  /// for each that is in flight when it starts, because SimGrid 3.32 shares links anew and looks at all of them when
  /// one starts or ends, and 256 for the flow itself. A million is some ten to thirty milliseconds.
  [[nodiscard]] std::int64_t work() const;

private:
  FlowNetwork();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace simsync
