// The order of events in a FlowNetwork, the same whatever solver shares the links. Private to sim/engine.
#pragma once
#include <queue>
#include <vector>

#include "sim/engine/flow_network.hpp"

namespace simsync::detail {

/// A network whose delays and flows end in a defined order. What ends less than 0.1 ns apart ends at one instant:
/// first the delays, then, when no more are due, the flows, each in the order in which they were started. After each
/// of the two `instant_over` is called. Flows that are started at one instant start together, after the delays that
/// are due then.
class NetworkEvents : public FlowNetwork {
public:
  void start_flow(int path, double bytes, Token token) final;
  [[nodiscard]] double starting_bytes(int path) const final;
  void after(Seconds delay, Token token) final;
  [[nodiscard]] std::int64_t flows_started() const final { return started_; }
  [[nodiscard]] std::int64_t work() const final { return work_; }

protected:
  static constexpr double kSameInstant = 1e-10;  ///< s; SimGrid's own precision (surf/precision)

  struct Start {
    int path = 0;
    double bytes = 0.0;  ///< a whole number, at least 1
    Token token = 0;
    std::int64_t number = 0;  ///< of flows and delays in the order of their starts
  };
  struct End {
    std::int64_t number = 0;
    int flow = 0;  ///< what the solver calls it
    Token token = 0;
  };

  void clear_events();
  void begin_events(Handler handler, std::function<void()> instant_over);
  void end_events();
  /// A flow has ended at this instant; happen() will tell.
  void note_end(const End& end) { ended_.push_back(end); }
  /// Hands over all that is due now. What a handler throws ends the run: nothing more is told of it.
  void happen();
  /// When the next delay ends; infinite: none is left.
  [[nodiscard]] double next_delay() const;

private:
  struct Delay {
    double date = 0.0;
    std::int64_t number = 0;
    Token token = 0;
    bool starts_flows = false;
    friend bool operator>(const Delay& a, const Delay& b) {
      return std::pair(a.date, a.number) > std::pair(b.date, b.number);
    }
  };

  /// The solver's clock, s. It need not begin at zero.
  [[nodiscard]] virtual double clock() const = 0;
  /// happen() is to be called at this date.
  virtual void wake_at(double date) = 0;
  virtual void launch(const Start& flow) = 0;
  /// The end of the flow is about to be told: it crosses no link any more.
  virtual void forget(const End& end) = 0;

  void tell_all();
  bool end_delays();
  bool tell_ends();
  void push(const Delay& delay);

  std::int64_t numbers_ = 0;
  std::int64_t started_ = 0;
  std::int64_t in_flight_ = 0;
  std::int64_t work_ = 0;
  bool happening_ = false;
  Handler handler_;
  std::function<void()> instant_over_;
  std::priority_queue<Delay, std::vector<Delay>, std::greater<>> delays_;
  std::vector<Delay> at_once_;  ///< pushed while things happen, and due at this instant; in the order of their numbers
  std::vector<Delay> due_;
  std::vector<Start> starting_;
  std::vector<End> ended_;
  std::vector<End> told_;
};

}  // namespace simsync::detail
