// Traces of other systems.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/trace/traced_model.hpp"

namespace simsync {

/// A trace as its source told it.
struct ImportedTrace {
  Trace trace;
  TraceHints hints;
  std::vector<std::string> notes;      ///< what was left out of it, and why
  std::optional<Seconds> update = {};  ///< TracedModel::update
  std::vector<Seconds> wall;           ///< by step: from its begin to its end, waiting included; empty when not told
  std::string device;                  ///< as the source calls it; empty when not told
};

/// Steps in our own form (models/trace/trace.hpp). An all-reduced variable counts as received before the first compute
/// that reads it and as sent when its gradient is all-reduced; the time of the collectives is noted and is no layer's.
/// In steps with all-reduces, updates are the worker's optimizer.
/// @throws InputError as load_trace does.
ImportedTrace import_own(const std::string& path);
ImportedTrace import_own(Trace trace);

/// Steps of PyTorch's profiler (Kineto; .json or .json.gz). Compute operations are the kernels of the device without
/// NCCL's and without copies to or from the host, or the outermost operators where nothing ran on a device. Every
/// gradient that is accumulated is a variable; it is sent then, and was received when the forward operator of its
/// gradient function began. Operators of optimizers are no layer's but `update`; those of data loaders are left out.
/// `progress` is told the share of the file that is read. Time: n log n in the events of the file. Memory: the
/// operators, kernels and launches of the file without their arguments, at most 768 MiB of them, and the trace.
/// @throws InputError naming what the trace lacks: operators, a backward pass, the shapes of the gradients.
ImportedTrace import_kineto(const std::string& path, const std::function<void(double)>& progress = {});

/// Steps of a TensorFlow session with one worker and parameter servers, one file each: RunMetadata (or StepStats) as
/// JSON, or a timeline in Chrome's format. A variable is what an Apply operation of a server updates; its gradient is
/// sent when the worker has made it.
/// @throws InputError naming what the trace lacks: a server's operations, the bytes of a variable, one worker.
ImportedTrace import_tensorflow(const std::vector<std::string>& paths);

}  // namespace simsync
