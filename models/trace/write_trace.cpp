#include <fmt/format.h>

#include "base/csv.hpp"
#include "base/file.hpp"
#include "models/trace/trace.hpp"

namespace simsync {
namespace {

std::string seconds(Seconds time) {
  return fmt::format("{:.9f}", time.value());
}

std::string row_text(const TraceStep& step, const TraceOp& op) {
  return csv_row({std::to_string(step.number), op.name, name_of(op.kind), op.variable, std::to_string(op.bytes.count),
                  seconds(op.start), seconds(op.end), fmt::format("{}", fmt::join(op.after, ";"))}) +
         '\n';
}

}  // namespace

const char* name_of(TraceOpKind kind) {
  switch (kind) {
    case TraceOpKind::Receive:
      return "receive";
    case TraceOpKind::Compute:
      return "compute";
    case TraceOpKind::Send:
      return "send";
    case TraceOpKind::Update:
      return "update";
    case TraceOpKind::AllReduce:
      return "all-reduce";
  }
  return "unknown";
}

const std::vector<std::string>& trace_header() {
  static const std::vector<std::string> kHeader{"step", "op", "kind", "variable", "bytes", "start_s", "end_s", "after"};
  return kHeader;
}

std::string trace_text(const Trace& trace) {
  std::string text = csv_row(trace_header()) + '\n';
  for (const TraceStep& step : trace.steps) {
    for (const TraceOp& op : step.ops) text += row_text(step, op);
  }
  return text;
}

void write_trace(const std::string& path, const Trace& trace) {
  write_file(path, trace_text(trace));
}

}  // namespace simsync
