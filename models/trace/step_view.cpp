#include "models/trace/step_view.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_map>

namespace simsync {
namespace detail {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

/// Compute operations in the order in which they began.
std::vector<std::size_t> compute_order(const TraceStep& step) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < step.ops.size(); ++i) {
    if (step.ops[i].kind == TraceOpKind::Compute) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const TraceOp& x = step.ops[a];
    const TraceOp& y = step.ops[b];
    return x.start != y.start ? x.start < y.start : x.end < y.end;
  });
  return order;
}

std::vector<Seconds> busy_before(const TraceStep& step, const std::vector<std::size_t>& order) {
  std::vector<Seconds> busy{Seconds{}};
  Seconds covered = step.ops[order.front()].start;
  for (const std::size_t i : order) {
    const TraceOp& op = step.ops[i];
    const Seconds begin = std::max(covered, op.start);
    busy.push_back(busy.back() + std::max(op.end - begin, Seconds{}));
    covered = std::max(covered, op.end);
  }
  return busy;
}

/// Walks from an operation back to what it waits for, and through messages of one variable to what these wait for: that
/// a message follows one of another variable is an order on the wire, not data.
class Ancestors {
public:
  explicit Ancestors(const TraceStep& step) : step_(step), seen_(step.ops.size(), kNone) {
    for (std::size_t i = 0; i < step.ops.size(); ++i) index_.emplace(step.ops[i].name, i);
  }
  /// Calls `visit` for each; the walk ends at compute operations.
  template <class Visit>
  void each(std::size_t from, const Visit& visit) {
    std::vector<std::size_t> open{from};
    while (!open.empty()) {
      const std::size_t i = open.back();
      open.pop_back();
      for (const std::string& name : step_.ops[i].after) {
        const std::size_t before = index_.at(name);
        if (seen_[before] == from || !carries_data(before, i)) continue;
        seen_[before] = from;
        visit(before);
        if (step_.ops[before].kind != TraceOpKind::Compute) open.push_back(before);
      }
    }
  }

private:
  [[nodiscard]] bool carries_data(std::size_t before, std::size_t after) const {
    const TraceOp& a = step_.ops[before];
    const TraceOp& b = step_.ops[after];
    return a.kind == TraceOpKind::Compute || b.kind == TraceOpKind::Compute || a.variable == b.variable;
  }

  const TraceStep& step_;
  std::unordered_map<std::string_view, std::size_t> index_;
  std::vector<std::size_t> seen_;  ///< the operation from which a walk last came by
};

void note_uses(StepView& view, const TraceStep& step, const std::vector<std::size_t>& order, Ancestors& ancestors) {
  for (std::size_t position = 0; position < order.size(); ++position) {
    ancestors.each(order[position], [&](std::size_t before) {
      const TraceOp& op = step.ops[before];
      if (op.kind == TraceOpKind::Receive) view.first_use.emplace(op.variable, position);
    });
  }
}

void note_sends(StepView& view, const TraceStep& step, const std::vector<std::size_t>& positions,
                Ancestors& ancestors) {
  for (std::size_t i = 0; i < step.ops.size(); ++i) {
    const TraceOp& op = step.ops[i];
    if (op.kind == TraceOpKind::Receive) view.received[op.variable] += op.bytes.count;
    if (op.kind != TraceOpKind::Send) continue;
    view.sent[op.variable] += op.bytes.count;
    ancestors.each(i, [&](std::size_t before) {
      if (step.ops[before].kind != TraceOpKind::Compute) return;
      std::size_t& ready = view.ready[op.variable];
      ready = std::max(ready, positions[before] + 1);
    });
  }
}

/// Where the backward pass begins.
std::size_t turning_point(const StepView& view, const TraceStep& step, const std::vector<std::size_t>& order,
                          const TraceHints& hints) {
  std::size_t turn = order.size();
  for (const auto& [variable, ready] : view.ready) {
    if (view.received.contains(variable)) turn = std::min(turn, ready - 1);
  }
  if (!hints.is_backward) return turn;
  for (std::size_t position = 0; position < turn; ++position) {
    if (hints.is_backward(step.ops[order[position]])) return position;
  }
  return turn;
}

}  // namespace

StepView view_of(const TraceStep& step, const TraceHints& hints) {
  StepView view;
  const auto order = compute_order(step);
  std::vector<std::size_t> positions(step.ops.size(), kNone);
  for (std::size_t position = 0; position < order.size(); ++position) positions[order[position]] = position;
  view.busy = busy_before(step, order);
  Ancestors ancestors(step);
  note_uses(view, step, order, ancestors);
  note_sends(view, step, positions, ancestors);
  view.backward = turning_point(view, step, order, hints);
  return view;
}

}  // namespace detail

Seconds compute_of(const TraceStep& step) {
  const auto order = detail::compute_order(step);
  return order.empty() ? Seconds{} : detail::busy_before(step, order).back();
}

}  // namespace simsync
