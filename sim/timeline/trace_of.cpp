#include "sim/timeline/trace_of.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace simsync {
namespace {

std::optional<TraceOpKind> kind_of(const Op& op) {
  if (op.kind() == OpKind::Compute) return TraceOpKind::Compute;
  if (!op.concerns_server()) return std::nullopt;
  if (const auto* moved = std::get_if<Transfer>(&op.body))
    return moved->pushes() ? TraceOpKind::Send : TraceOpKind::Receive;
  if (op.host().action == HostAction::Apply) return TraceOpKind::Update;
  return std::nullopt;
}

/// A step computes with what was pulled at the end of the iteration before.
int iterations_before(TraceOpKind kind) {
  return kind == TraceOpKind::Receive ? 1 : 0;
}

class TraceMaker {
public:
  TraceMaker(const Plan& plan, const std::vector<Span>& spans, int rank) : plan_(plan), rank_(rank) {
    for (const Span& span : spans)
      if (concerns(span)) spans_[{span.op, span.iteration}] = &span;
    for (std::size_t id = 0; id < plan.ops.size(); ++id) {
      const auto kind = kind_of(plan.ops[id]);
      if (kind) kept_.emplace_back(static_cast<OpId>(id), *kind);
    }
    for (const auto& [id, kind] : kept_) {
      std::set<OpId> found;
      for (const After& after : plan.ops[static_cast<std::size_t>(id)].after)
        add_kept(after.op, after.lag, iterations_before(kind), found);
      for (const OpId before : found) after_[id].push_back(title_of(plan, plan.ops[static_cast<std::size_t>(before)]));
    }
  }

  Trace run() const {
    int last = 0;
    for (const auto& [key, span] : spans_) last = std::max(last, key.second);
    Trace out;
    for (int k = 0; k <= last; ++k)
      if (auto step = step_at(k)) out.steps.push_back(std::move(*step));
    return out;
  }

private:
  [[nodiscard]] bool concerns(const Span& span) const {
    return plan_.grouping(plan_.ops[static_cast<std::size_t>(span.op)].grouping).group_of(rank_) == span.group;
  }

  /// Operations of a trace that `op`, `lag` iterations before, stands for: itself, or what it waited for.
  void add_kept(OpId op, int lag, int own_before, std::set<OpId>& found) const {
    const Op& before = plan_.ops[static_cast<std::size_t>(op)];
    if (const auto kind = kind_of(before)) {
      if (lag + own_before == iterations_before(*kind)) found.insert(op);
      return;
    }
    for (const After& after : before.after)
      if (lag + after.lag + own_before <= 1) add_kept(after.op, lag + after.lag, own_before, found);
  }

  [[nodiscard]] std::optional<TraceStep> step_at(int k) const {
    TraceStep step{.number = number_of_iteration(k), .ops = {}};
    for (const auto& [id, kind] : kept_) {
      const auto found = spans_.find({id, k - iterations_before(kind)});
      if (found == spans_.end()) return std::nullopt;
      const Op& op = plan_.ops[static_cast<std::size_t>(id)];
      TraceOp out{.name = title_of(plan_, op), .kind = kind, .start = found->second->start, .end = found->second->end};
      if (kind != TraceOpKind::Compute) {
        out.variable = op.reason.label;
        out.bytes = Bytes{std::llround(op.bytes())};
      }
      const auto after = after_.find(id);
      if (after != after_.end()) out.after = after->second;
      step.ops.push_back(std::move(out));
    }
    return step;
  }

  const Plan& plan_;
  int rank_;
  std::map<std::pair<OpId, int>, const Span*> spans_;  ///< by op and iteration
  std::vector<std::pair<OpId, TraceOpKind>> kept_;     ///< in the order of the plan
  std::map<OpId, std::vector<std::string>> after_;
};

}  // namespace

Trace trace_of(const Plan& plan, const std::vector<Span>& spans, int rank) {
  return TraceMaker(plan, spans, rank).run();
}

}  // namespace simsync
