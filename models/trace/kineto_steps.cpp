#include "models/trace/kineto_steps.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace simsync::detail {
namespace {

/// From the first operator on, whatever ends last.
KinetoRange whole_trace(const KinetoEvents& events) {
  KinetoRange whole = events.ops.front();
  for (const KinetoOp& op : events.ops) whole.end = std::max(whole.end, op.end);
  for (const KinetoKernel& kernel : events.kernels) whole.end = std::max(whole.end, kernel.end);
  whole.end += 1.0;
  whole.name = "the whole trace";
  return whole;
}

bool has_gradients(const KinetoEvents& events, double begin, double end) {
  const auto [first, last] = begun_within(events.ops, begin, end);
  return std::any_of(events.ops.begin() + static_cast<std::ptrdiff_t>(first),
                     events.ops.begin() + static_cast<std::ptrdiff_t>(last), accumulates);
}

/// Several optimizers may step after the same gradients: the last of them ends the step.
std::vector<KinetoRange> inferred(const KinetoEvents& events) {
  std::vector<KinetoRange> steps;
  double begin = events.ops.front().begin;
  for (const KinetoRange& update : optimizer_steps(events)) {
    if (has_gradients(events, begin, update.end)) {
      steps.push_back({begin, update.end, "a step that an optimizer ends", update.thread});
    } else if (!steps.empty()) {
      steps.back().end = update.end;
    }
    begin = std::max(begin, update.end);
  }
  return steps;
}

}  // namespace

std::vector<KinetoRange> optimizer_steps(const KinetoEvents& events) {
  std::vector<KinetoRange> found;
  std::copy_if(events.optimizers.begin(), events.optimizers.end(), std::back_inserter(found),
               [](const KinetoRange& range) { return range.name.starts_with("Optimizer.step"); });
  std::sort(found.begin(), found.end(), [](const KinetoRange& a, const KinetoRange& b) { return a.end < b.end; });
  return found;
}

std::vector<KinetoRange> steps_of(const KinetoEvents& events, std::vector<std::string>& notes) {
  constexpr std::size_t kEnough = 3;
  if (!events.steps.empty()) return events.steps;
  auto steps = inferred(events);
  if (steps.size() < 2) {
    notes.emplace_back("no steps are marked (ProfilerStep#n): the whole trace counts as one");
    return {whole_trace(events)};
  }
  std::string note =
      fmt::format("no steps are marked (ProfilerStep#n): {} are told by where the optimizer's steps end", steps.size());
  if (steps.size() >= kEnough) {
    steps.erase(steps.begin());
    note += ", and the first of them, which holds warm-up, is left out";
  }
  notes.push_back(std::move(note));
  return steps;
}

}  // namespace simsync::detail
