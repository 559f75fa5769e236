// All-reduces of a trace as an exchange with servers, which is what layers are found by.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/parse_units.hpp"
#include "models/layer_times.hpp"
#include "models/trace/importers.hpp"

namespace simsync {
namespace {

/// What the collectives and the optimizer of one step took.
struct StepTotals {
  double bytes = 0.0;
  Seconds collectives;  ///< where several ran at the same time, that time counts once
  Seconds update;
};

bool has_all_reduce(const TraceStep& step) {
  return std::any_of(step.ops.begin(), step.ops.end(),
                     [](const TraceOp& op) { return op.kind == TraceOpKind::AllReduce; });
}

/// The time in which at least one operation of that kind ran.
Seconds covered(const TraceStep& step, TraceOpKind kind) {
  std::vector<std::pair<Seconds, Seconds>> ranges;
  for (const TraceOp& op : step.ops) {
    if (op.kind == kind) ranges.emplace_back(op.start, op.end);
  }
  std::sort(ranges.begin(), ranges.end());
  Seconds sum;
  Seconds end = ranges.empty() ? Seconds{} : ranges.front().first;
  for (const auto& [from, to] : ranges) {
    sum += std::max(to - std::max(from, end), Seconds{});
    end = std::max(end, to);
  }
  return sum;
}

/// The compute operation that reads each variable first.
std::map<std::string, std::size_t> first_readers(const TraceStep& step) {
  std::map<std::string, std::size_t> readers;
  for (std::size_t i = 0; i < step.ops.size(); ++i) {
    if (step.ops[i].kind != TraceOpKind::Compute) continue;
    for (const std::string& variable : split_names(step.ops[i].variable)) {
      const auto [known, fresh] = readers.emplace(variable, i);
      if (!fresh && step.ops[i].start < step.ops[known->second].start) known->second = i;
    }
  }
  return readers;
}

/// The step with a send in place of every all-reduce, and a receive before the variable's first reader.
StepTotals exchange(TraceStep& step) {
  StepTotals totals{
      .bytes = 0.0, .collectives = covered(step, TraceOpKind::AllReduce), .update = covered(step, TraceOpKind::Update)};
  const auto readers = first_readers(step);
  std::vector<TraceOp> receives;
  for (TraceOp& op : step.ops) {
    if (op.kind == TraceOpKind::Compute) op.variable.clear();
    if (op.kind != TraceOpKind::AllReduce) continue;
    totals.bytes += static_cast<double>(op.bytes.count);
    op.kind = TraceOpKind::Send;
    const auto reader = readers.find(op.variable);
    if (reader == readers.end()) continue;
    TraceOp& first = step.ops[reader->second];
    // ';' is in no other name.
    receives.push_back(
        {"receive;" + op.name, TraceOpKind::Receive, op.variable, op.bytes, first.start, first.start, {}});
    first.after.push_back(receives.back().name);
  }
  step.ops.insert(step.ops.end(), receives.begin(), receives.end());
  std::set<std::string> updates;
  for (const TraceOp& op : step.ops) {
    if (op.kind == TraceOpKind::Update) updates.insert(op.name);
  }
  std::erase_if(step.ops, [](const TraceOp& op) { return op.kind == TraceOpKind::Update; });
  for (TraceOp& op : step.ops) std::erase_if(op.after, [&](const std::string& name) { return updates.contains(name); });
  return totals;
}

}  // namespace

ImportedTrace import_own(Trace trace) {
  ImportedTrace out{.trace = std::move(trace), .hints = {}, .notes = {}, .wall = {}, .device = {}};
  double bytes = 0.0;
  double seconds = 0.0;
  std::vector<Seconds> updates;
  for (TraceStep& step : out.trace.steps) {
    if (!has_all_reduce(step)) continue;
    const StepTotals totals = exchange(step);
    bytes += totals.bytes;
    seconds += totals.collectives.value();
    updates.push_back(totals.update);
  }
  if (updates.empty()) return out;
  const auto count = static_cast<double>(updates.size());
  out.notes.push_back(fmt::format("left out: collectives of {}, {} in a step", format_bytes(bytes / count),
                                  format_seconds(Seconds{seconds / count})));
  if (const Seconds update = median(std::move(updates)); update.value() > 0.0) out.update = update;
  return out;
}

ImportedTrace import_own(const std::string& path) {
  return import_own(load_trace(path));
}

}  // namespace simsync
