// What a replay keeps of what happened: spans of ops and flows. Private to sim/engine.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/engine/groups.hpp"
#include "sim/engine/link_rates.hpp"

namespace simsync::detail {

/// Notes when instances become ready, start and end. Switched off, it notes nothing and answers -1. Numbers of spans
/// and flows stay as they are while old ones are forgotten (ReplayOptions::recorded_steps).
class Recorder {
public:
  /// `paths` is that of the flows, and may grow.
  Recorder(const ReplayOptions& options, const Plan& plan, const SimulatedRanks& simulated,
           const std::vector<FlowPath>& paths);

  [[nodiscard]] bool on() const { return on_; }
  /// Forgets what ended before the steps that are kept.
  void step_ends(Seconds now);

  /// `cause`: the span whose end let the instance become ready; -1: none.
  void ready(const Instance& instance, std::int32_t cause, Seconds now);
  /// `cause`: the span that left the resource which the instance waited for; -1: none.
  void start(const Instance& instance, std::int32_t cause, Seconds now);
  /// Number of the instance's span.
  std::int32_t end(const Instance& instance, Seconds now);
  /// The span that ended last; -1: none.
  [[nodiscard]] std::int32_t last_span() const { return first_span_ + static_cast<std::int32_t>(spans_.size()) - 1; }

  /// `flow` starts now. Returns its number, for flow_ends; below -1 where only its bytes are counted.
  std::int32_t flow(const FlowSpan& flow, Seconds now);
  /// -1, what a recorder answers that is switched off, is ignored.
  void flow_ends(std::int32_t flow, Seconds now);

  /// Hands over what was noted and forgets it.
  std::vector<Span> take_spans();
  std::vector<FlowSpan> take_flows();
  [[nodiscard]] std::vector<LinkRate> rates(const std::vector<Link>& links) const;

private:
  struct Noted {
    Seconds ready;
    Seconds start;
    std::int32_t cause = -1;
  };
  static auto key(const Instance& i) { return std::make_tuple(i.op, i.group, i.iteration, i.copy); }

  /// A flow of which only bytes are counted.
  struct Counted {
    Seconds start;
    double bytes = 0.0;
    int path = 0;
  };
  void forget_all();
  [[nodiscard]] bool keeps(const Instance& instance) const {
    return filter_.keeps_all() || filter_.keeps(plan_.ops[static_cast<std::size_t>(instance.op)], instance.group);
  }
  void count(const Counted& flow, Seconds now);
  std::int32_t begin_counting(const Counted& flow);
  /// Causes as indices of what was kept.
  [[nodiscard]] std::int32_t renumbered(std::int32_t cause) const { return std::max(-1, cause - first_span_); }

  const Plan& plan_;
  const std::vector<FlowPath>& paths_;
  InstanceFilter filter_;
  std::optional<LinkRates> rates_;
  std::vector<Counted> counted_;            ///< by slot: flow -2 is slot 0
  std::vector<std::int32_t> free_counted_;  ///< slots
  bool on_;
  int steps_;
  std::int64_t most_;
  std::vector<Seconds> step_ends_;
  std::int32_t first_span_ = 0;  ///< number of the first one kept
  std::int32_t first_flow_ = 0;
  std::map<std::tuple<OpId, int, int, int>, Noted> noted_;  ///< of instances that have not ended
  std::vector<Span> spans_;
  std::vector<FlowSpan> flows_;
};

/// What each link carried in `elapsed`, busiest first.
std::vector<LinkUse> link_use(const Traffic& traffic, Seconds elapsed);

}  // namespace simsync::detail
