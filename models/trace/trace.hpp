// What one worker did in some steps: receives, compute, sends and updates, with their times and what each waited for.
#pragma once
#include <string>
#include <vector>

#include "base/units.hpp"

namespace simsync {

enum class TraceOpKind {
  Receive,    ///< a variable, or a part of it, arrives at the worker
  Compute,    ///< work of the worker's device
  Send,       ///< a gradient, or a part of it, leaves the worker
  Update,     ///< a server applies a gradient; in a step with all-reduces the worker's optimizer
  AllReduce,  ///< a gradient is summed over the workers; of a fused one, every variable's part is an operation
};
const char* name_of(TraceOpKind kind);

/// One operation of one step.
struct TraceOp {
  std::string name;  ///< unique in its step; the same operation has the same name in every step
  TraceOpKind kind = TraceOpKind::Compute;
  std::string variable;  ///< of compute: the all-reduced variables that it reads, ';' between; else exactly one
  Bytes bytes;           ///< of the message or the gradient; 0 for compute
  Seconds start;         ///< on any clock that all operations of the step share
  Seconds end;
  std::vector<std::string> after;  ///< names of the operations of this step whose results it reads
};

/// One step, its operations in any order.
struct TraceStep {
  int number = 1;  ///< as the file calls it; steps need not be numbered without gaps
  std::vector<TraceOp> ops;
};

/// The steps of one worker, kept apart so that their variance survives.
struct Trace {
  std::vector<TraceStep> steps;
};

/// The columns of the file, in order; more may follow, and are not looked at.
const std::vector<std::string>& trace_header();

/// Reads a trace (format: models/README.md).
/// @throws InputError with file and line for an operation that cannot be: of an unknown kind, ending before it starts,
/// of negative bytes, twice in a step, after one that its step lacks or after itself, or of compute that reads a
/// variable which is not all-reduced; and for a step without compute.
Trace load_trace(const std::string& path);
/// The same for text held in memory; `name` stands for the file in messages.
Trace parse_trace(const std::string& text, const std::string& name);

/// The names in a list with ';' between; an empty text has none.
std::vector<std::string> split_names(const std::string& list);

/// Writes `trace` in the form that `load_trace` reads: times in seconds, 9 digits after the point.
/// @throws InputError when `path` cannot be written.
void write_trace(const std::string& path, const Trace& trace);
/// The text of that file.
std::string trace_text(const Trace& trace);

}  // namespace simsync
