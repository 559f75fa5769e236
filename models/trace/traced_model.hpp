// From a trace to what every command takes: a model given in numbers, and a profile whose steps are kept apart.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/profile.hpp"
#include "models/trace/trace.hpp"

namespace simsync {

/// One variable of a trace that is both received and sent: what training synchronizes.
struct TracedVariable {
  std::string name;                 ///< as the trace calls it
  std::vector<std::int64_t> shape;  ///< of elements of four bytes; flat where the source tells only bytes
};

/// What a worker computes from the first use of some variables to the first use of the next ones, and in the backward
/// pass between the moments at which their gradients become ready.
struct TracedLayer {
  std::string name;  ///< unique
  LayerKind kind = LayerKind::Elementwise;
  std::vector<TracedVariable> variables;  ///< none: compute before the first use and after the last gradient
};

/// Layers in execution order with their times in every step. The times of a step add up to its compute.
struct TracedModel {
  std::vector<TracedLayer> layers;
  std::vector<std::vector<LayerTime>> steps;  ///< by step of the trace, then by layer
  /// The device's optimizer in a step, where the source has it apart: the median. Not part of any layer's time.
  std::optional<Seconds> update = {};
  std::vector<std::string> notes;  ///< what was left out, and what is only nearly so
};

/// What a source knows beyond the operations.
struct TraceHints {
  struct Variable {
    std::vector<std::int64_t> shape;  ///< of elements of four bytes
    LayerKind kind = LayerKind::Elementwise;
  };
  std::map<std::string, Variable> variables;
  /// Tells operations of the backward pass; without it the backward pass begins with the operation after which the
  /// first gradient is ready, which moves time only between the two passes of the last layer.
  std::function<bool(const TraceOp&)> is_backward;
};

/// How long the worker computes in `step`: where operations ran at the same time, that time counts once.
Seconds compute_of(const TraceStep& step);

/// The layers of `trace`: a boundary lies where a compute operation reads a variable that none read before, and where a
/// gradient becomes ready, which is after the last compute operation that its send waits for. Time in which several
/// operations ran counts for the one that began first. A gradient that is ready before one of a later layer counts as
/// ready with it; a variable that is received and never sent, or sent and never received, is left out; a note says so.
/// @throws InputError when no variable is both received and sent, when the trace lacks the dependencies of one, or
/// when two steps differ in their variables or their bytes.
TracedModel layers_of(const Trace& trace, const TraceHints& hints = {});

/// What the files of a traced model say beyond the trace.
struct TraceOrigin {
  std::string name;    ///< of the model
  std::string device;  ///< as clusters name it: the times hold for it alone
  std::string precision = "fp32";
  std::int64_t batch = 1;  ///< samples of one step
  std::string framework;
  std::string source;
  std::string profile = {};  ///< file name of its profile, beside it; save_traced_model fills it in
};

/// The files that save_traced_model wrote.
struct TracedFiles {
  std::string model;
  std::string profile;
};

/// The model file.
std::string model_text(const TracedModel& traced, const TraceOrigin& origin);
/// Writes the model to `path`, which ends in .yaml, and beside it NAME.profile.csv with its manifest.
/// @throws InputError when `path` has another extension, or a file cannot be written.
TracedFiles save_traced_model(const std::string& path, const TracedModel& traced, const TraceOrigin& origin);

}  // namespace simsync
