// Traces of a few operations whose layers can be told by hand.
#pragma once
#include <string>
#include <vector>

#include "models/trace/trace.hpp"

namespace simsync::test {

inline TraceOp compute_op(const std::string& name, double start, double end, std::vector<std::string> after = {}) {
  return {name, TraceOpKind::Compute, {}, {}, Seconds{start}, Seconds{end}, std::move(after)};
}

inline TraceOp receive_op(const std::string& variable, std::int64_t bytes, double start, double end) {
  return {"receive " + variable, TraceOpKind::Receive, variable, {bytes}, Seconds{start}, Seconds{end}, {}};
}

inline TraceOp send_op(const std::string& variable, std::int64_t bytes, double start, const std::string& after) {
  return {"send " + variable, TraceOpKind::Send, variable, {bytes}, Seconds{start}, Seconds{start + 1.0}, {after}};
}

/// Two layers, in seconds: `load` 0-1 reads no variable; `conv` 1-3 reads conv/weights; `fc` waits for fc/weights until
/// 5 and ends at 6; the gradients are made at 6-8 (fc) and 8-12 (conv); `tail` 12-12.5 follows. Everything is `slow`
/// times as long.
inline TraceStep two_layer_step(int number, double slow = 1.0) {
  TraceStep step{.number = number, .ops = {}};
  const auto at = [slow](double time) { return slow * time; };
  step.ops = {
      receive_op("conv/weights", 400, at(0), at(1)),
      receive_op("fc/weights", 800, at(0), at(5)),
      receive_op("global_step", 8, at(0), at(0.5)),
      compute_op("load", at(0), at(1)),
      compute_op("conv", at(1), at(3), {"load", "receive conv/weights"}),
      compute_op("fc", at(5), at(6), {"conv", "receive fc/weights", "receive global_step"}),
      compute_op("dfc", at(6), at(8), {"fc"}),
      send_op("fc/weights", 800, at(8), "dfc"),
      compute_op("dconv", at(8), at(12), {"dfc"}),
      send_op("conv/weights", 400, at(12), "dconv"),
      compute_op("tail", at(12), at(12.5), {"dconv"}),
  };
  return step;
}

}  // namespace simsync::test
