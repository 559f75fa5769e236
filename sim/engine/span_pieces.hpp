// A recorded span cut into pieces, each with the one thing that took its time. Private to sim/engine.
#pragma once
#include <string>
#include <vector>

#include "sim/engine/critical_path.hpp"
#include "sim/engine/flow_limits.hpp"

namespace simsync::detail {

/// Cuts spans of one prediction. All three must outlive it.
class SpanCutter {
public:
  SpanCutter(const Plan& plan, const Cluster& cluster, const Prediction& prediction)
      : plan_(plan), cluster_(cluster), prediction_(prediction), limits_(prediction) {}

  /// In order of time, without gaps from the span's start to its end.
  std::vector<PathPiece> pieces(const Span& span);
  /// The flow of a transfer that waited for others on its connection; null for every other span.
  [[nodiscard]] const FlowSpan* waited_in_turn(const Span& span) const;

private:
  struct Stage;

  void add(double begin, double end, const std::string& resource, const std::string& where, Seconds shared = {});
  void add_flow(const FlowSpan& flow, double begin, double end);
  void cut_compute(const Op& op, const Span& span);
  void cut_host(const Op& op, const Span& span);
  double cut_packing(Seconds packing, const Span& span);
  void cut_transfer(const Op& op, const Span& span);
  void cut_collective(const Op& op, const Span& span);
  [[nodiscard]] std::vector<Stage> stages_of(const Span& span) const;
  [[nodiscard]] const Place& first_place(const Op& op, int group) const;
  [[nodiscard]] const Op& op_of(const Span& span) const { return plan_.ops[static_cast<std::size_t>(span.op)]; }

  const Plan& plan_;
  const Cluster& cluster_;
  const Prediction& prediction_;
  FlowLimits limits_;
  std::vector<PathPiece> out_;
  std::string title_;
};

}  // namespace simsync::detail
